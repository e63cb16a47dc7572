"""The files of OpenMessaging Benchmark: its workloads and drivers read in, its result file written.

    files     workload and driver files as they stand: YAML, and Java properties inside it
    workload  a workload file's keys, and what becomes of each
    driver    a driver file's keys, and what becomes of each
    importer  both together as a workload and a target
    result    a run as the result file that its chart scripts read

No key is passed over in silence: what is not honoured is said, as a warning where it changes what is measured and as a
note where it does not. Formats: the project's sources, `Workload.java`, `TestResult.java` and the Kafka driver's
`Config.java`, and those of the forks by Redpanda and by J. Vanlightly.
"""
