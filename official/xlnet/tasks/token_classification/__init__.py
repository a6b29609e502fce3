"""Token classification, such as named entity recognition."""

DATASETS = {"conll2003": {"name": "token_classification"}}
