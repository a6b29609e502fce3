"""Raw text to pre-training records.

    input files → shards → documents → token files   (pass 1, parallel over shards)
    token files → lanes → windows → record files     (pass 2, parallel over lanes)

`corpus` finds shards, `readers` reads documents, `filters` drops poor ones, `token_files` keeps
their tokens, `splits` decides which documents are held out and which are duplicates, `lanes` lays
the tokens out, `windows` chooses A and B, `records` encodes. `prepare` runs all of it on one
machine and `beam_pipeline` on many, with the same bytes as the result.
"""
