"""Files that may be wrong, hostile or shared: strict JSON and YAML, schemas, locks, any path."""
