"""Files of the OpenMessaging Benchmark to import."""

DRIVER = """
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver
replicationFactor: 3
topicConfig: |
  min.insync.replicas=2
  flush.messages=1
commonConfig: |
  bootstrap.servers=10.0.0.1:9092,10.0.0.2:9092
  request.timeout.ms=120000
producerConfig: |
  acks=all
  linger.ms=1
  batch.size=131072
consumerConfig: |
  auto.offset.reset=earliest
  enable.auto.commit=false
  max.partition.fetch.bytes=131072
"""


#: The published 24 h test of a field report: 288 partitions, 1 KiB, 4 producers, a gigabyte a second.
FIELD_REPORT = """
name: 1GBs-4-producers-24hr
topics: 1
partitionsPerTopic: 288
messageSize: 1024
useRandomizedPayloads: true
randomBytesRatio: 0.5
randomizedPayloadPoolSize: 1000
subscriptionsPerTopic: 1
consumerPerSubscription: 4
producersPerTopic: 4
producerRate: 1024000
consumerBacklogSizeGB: 0
testDurationMinutes: 1440
warmupDurationMinutes: 60
"""
