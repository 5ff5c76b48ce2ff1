"""How fast decisions are, beside other libraries: workloads, players, measurements, and how they are shown."""
