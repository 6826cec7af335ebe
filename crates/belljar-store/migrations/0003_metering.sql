-- What was counted of each sandbox. A row outlives its sandbox; what a project or a key used is the sum of its rows.
CREATE TABLE meter_readings (
    sandbox TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL,
    key_id TEXT,
    cpu_micros BIGINT NOT NULL,
    wall_millis BIGINT NOT NULL,
    memory_mib_seconds BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    ingress_bytes BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    read_at BIGINT NOT NULL
);
CREATE INDEX meter_readings_of_project ON meter_readings (project, read_at);
CREATE INDEX meter_readings_of_key ON meter_readings (key_id, read_at);

-- How much somebody may have; `warned_at` is set by whoever tells of the soft limit, so that it is told once.
CREATE TABLE budgets (
    subject TEXT NOT NULL,
    meter TEXT NOT NULL,
    soft BIGINT,
    hard BIGINT,
    at_limit TEXT NOT NULL,
    warned_at BIGINT,
    PRIMARY KEY (subject, meter)
);
