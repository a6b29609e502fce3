"""The verbs: a public function for each, in a module that imports nothing heavy."""
