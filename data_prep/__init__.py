"""Data preparation: raw text to pre-training records, and readers of fine-tuning data.

    input files → shards → documents → token files   (pass 1, parallel over shards)
    token files → lanes → windows → record files     (pass 2, parallel over lanes)

`corpus/` splits input files into shards, reads and filters documents, and trains vocabularies.
`records/` tokenizes documents (`token_files`), assigns them to splits and finds duplicates
(`splits`), divides the tokens into lanes (`lane_files`), selects segments A and B (`windows`), and
serializes records (`records`). `pipelines/prepare` runs these steps on processes of one machine
(`local_workers`) or on Apache Beam (`beam_workers`), with byte-identical results. `tasks/` reads
the data sets of fine-tuning tasks.
"""
