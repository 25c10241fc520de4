"""The test lab: real Kafka clusters, the mirror under test, feeds and comparers, for tests and for ./demo."""
