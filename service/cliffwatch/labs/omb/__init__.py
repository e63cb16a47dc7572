"""OpenMessaging Benchmark files: import of workload and driver files, export of result files.

    files     parse workload and driver files: YAML, and Java properties inside it
    workload  import the keys of a workload file
    driver    import the keys of a driver file
    importer  import both files as a workload and a target
    result    export a run as the result file that the benchmark's chart scripts read

No key is ignored silently: one that is not honoured gives a warning if it changes what is measured, otherwise a note.
Formats: the project's sources, `Workload.java`, `TestResult.java` and the Kafka driver's `Config.java`, and those of
the forks by Redpanda and by J. Vanlightly.
"""
