"""The engine that runs `cliffwatch-load kafka`: produces to and consumes from brokers over the Kafka protocol."""
