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
# is queued again. So it is if a task is killed or lost, unless that happened three times in a row:
# then the machine is too small, or the cause is in a log above. The run resumes from the last
# checkpoint. Wrong flags, bugs and diverged runs end the job.
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

statuses=slurm-$SLURM_JOB_ID.statuses  # A line for each time that the job has run.
echo "$status" >> "$statuses"
last_three=$(tail -n 3 "$statuses" | xargs)

# As in the table of docs/reliability.md.
case $status in
  75)
    scontrol requeue "$SLURM_JOB_ID"
    ;;
  76 | 134 | 137 | 139 | 142 | 143)
    if [[ $last_three == "$status $status $status" ]]; then
      echo "status $status three times in a row: the job is not queued again; the same sbatch" \
        "resumes the run" >&2
    else
      scontrol requeue "$SLURM_JOB_ID"
    fi
    ;;
esac
exit "$status"
