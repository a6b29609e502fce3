#!/bin/bash
# Creates a TPU VM if there is none of that name, installs the wheel on it, mounts a bucket and runs
# `xlnet pretrain` or `xlnet finetune` there:
#
#   NAME=xlnet ZONE=us-west4-a BUCKET=my-bucket \
#   tools/launch/tpu_vm.sh pretrain --config=bucket/base.yaml --data=bucket/data \
#     --output=bucket/model --set=training.steps_per_execution=100
#
# The arguments are those of `xlnet`; the bucket is mounted as `bucket`. TYPE and VERSION are the
# kind of TPU and its image (one host: `--strategy=tpu` uses the TPU cores of this VM). The same
# command resumes a run. Needs gcloud here and gcsfuse on the image. A TPU VM costs money until
# `gcloud compute tpus tpu-vm delete` removes it.

set -euo pipefail

: "${NAME:?name of the TPU VM}" "${ZONE:?its zone}" "${BUCKET:?bucket of data and models}"
: "${TYPE:=v5litepod-8}" "${VERSION:=v2-alpha-tpuv5-lite}"
: "${WHEEL:=$(ls dist/xlnet_garden-*.whl)}"
at=(--zone="$ZONE" --quiet)

on_tpu() {
  gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --command="$1"
}

gcloud compute tpus tpu-vm describe "$NAME" "${at[@]}" > /dev/null 2>&1 ||
  gcloud compute tpus tpu-vm create "$NAME" "${at[@]}" \
    --accelerator-type="$TYPE" --version="$VERSION"
gcloud compute tpus tpu-vm scp "$WHEEL" "$NAME:" "${at[@]}"

# tensorflow-tpu replaces tensorflow, on which the wheel depends; libtpu comes with it.
on_tpu "set -e
  curl -LsSf https://astral.sh/uv/install.sh | sh
  ~/.local/bin/uv venv --allow-existing --python 3.11 env
  export VIRTUAL_ENV=\$HOME/env
  ~/.local/bin/uv pip install $(printf '%q' "$(basename "$WHEEL")")
  ~/.local/bin/uv pip uninstall tensorflow
  ~/.local/bin/uv pip install --reinstall 'tensorflow-tpu==2.20.*'
  mkdir -p bucket
  mountpoint -q bucket || gcsfuse --implicit-dirs $(printf '%q' "$BUCKET") bucket"

command=$(printf '%q ' xlnet "$@" --strategy=tpu)
on_tpu "PATH=\$HOME/env/bin:\$PATH $command"
