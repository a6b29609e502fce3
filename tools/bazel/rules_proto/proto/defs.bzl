"""The protocol buffer rules that are built into Bazel 4."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
