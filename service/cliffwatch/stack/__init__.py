"""The watchers around runs: Prometheus, Alertmanager and the exporters, as this project starts and configures them."""
