"""Execution of `xlnet prepare`: on local processes or on Apache Beam."""
