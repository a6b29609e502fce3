#!/bin/bash
# Runs `xlnet pretrain` or `xlnet finetune` on the GPUs of several nodes of a Slurm cluster:
#
#   sbatch --nodes=4 tools/launch/slurm.sh pretrain --config=configs/base.yaml \
#     --data=/shared/data --output=/shared/model
#
# The arguments are those of `xlnet`, which has to be on the PATH of all nodes. Options of sbatch
# override the directives below, e.g. --gpus-per-node=4. There is one task per node, which uses all
# GPUs of the job on that node; --strategy=multi_worker finds the tasks through Slurm.
#
# Two minutes before the time limit all tasks save a checkpoint and exit with status 75, and the job
# is queued again. So it is if a task is killed (137, 143), or is lost to the others (76, 142). It resumes
# from the last checkpoint.
#
#SBATCH --job-name=xlnet
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append

set -euo pipefail

status=0
srun --kill-on-bad-exit=1 xlnet "$@" --strategy=multi_worker || status=$?
case $status in
  75 | 76 | 137 | 142 | 143) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit "$status"
