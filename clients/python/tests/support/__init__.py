"""What the tests stand on: a deployment of their own, waiting, a proxy that cuts, a checker of histories."""
