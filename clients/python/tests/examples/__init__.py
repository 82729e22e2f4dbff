"""The examples, the snippets of the documentation, and the package as it is installed, each as its reader would run it."""
