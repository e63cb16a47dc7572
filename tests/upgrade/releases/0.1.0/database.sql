BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0004');
CREATE TABLE findings (
	run_id VARCHAR NOT NULL, 
	event_id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	name VARCHAR NOT NULL, 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_findings PRIMARY KEY (run_id, event_id), 
	CONSTRAINT fk_findings_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE kept_alerts (
	run_id VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	starts_at FLOAT NOT NULL, 
	status VARCHAR NOT NULL, 
	received_at FLOAT NOT NULL, 
	event TEXT NOT NULL, 
	CONSTRAINT pk_kept_alerts PRIMARY KEY (run_id, fingerprint, starts_at, status)
);
CREATE TABLE runs (
	id VARCHAR NOT NULL, 
	directory VARCHAR NOT NULL, 
	workload_name VARCHAR NOT NULL, 
	workload_version INTEGER, 
	engine VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	target_key VARCHAR NOT NULL, 
	request_digest VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	since FLOAT NOT NULL, 
	phase VARCHAR, 
	verdict VARCHAR, 
	reasons TEXT NOT NULL, 
	stop_requested BOOLEAN NOT NULL, 
	created_at FLOAT NOT NULL, 
	started_at FLOAT, 
	finished_at FLOAT, 
	load_start FLOAT, 
	load_stop FLOAT, 
	planned_seconds FLOAT NOT NULL, 
	schedule_id VARCHAR, 
	created_by VARCHAR NOT NULL, 
	windows INTEGER NOT NULL, 
	last_window_end FLOAT, 
	events_offset_bytes BIGINT NOT NULL, 
	last_event_id INTEGER NOT NULL, imported_at FLOAT, figures TEXT, curve TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('measured','STATE_DIRECTORY/runs/measured','steady',NULL,'synthetic','synthetic:nowhere','synthetic:nowhere','107d0cd31ece1a793db62a4ecfd32831ff1ebf5851653493e7e3971b222fbdca','finished',1.79543749511171197891e+09,'cool_down','pass','["20,000 operations without an error in 20s of measurement, 100.00 % of the requested time."]',0,1.79543746833443880082e+09,1.79543747033001303671e+09,1.79543749511171197891e+09,1795437471.0,1795437491.0,20.0,NULL,'first',20,1795437491.0,1877,13,NULL,'{"bytes_per_second":16384000.0,"device_write_seconds":null,"latency":"publish","max_seconds":0.006844415,"onset":null,"operations_per_second":1000.0,"p50_seconds":0.001995775,"p99_seconds":0.003993599}','[[1795437472.0,0.003813375,null],[1795437473.0,0.003661823,null],[1795437474.0,0.003876863,null],[1795437475.0,0.004157439,null],[1795437476.0,0.004153343,null],[1795437477.0,0.003983359,null],[1795437478.0,0.004177919,null],[1795437479.0,0.003897343,null],[1795437480.0,0.003827711,null],[1795437481.0,0.003792895,null],[1795437482.0,0.004206591,null],[1795437483.0,0.004390911,null],[1795437484.0,0.003633151,null],[1795437485.0,0.004016127,null],[1795437486.0,0.003784703,null],[1795437487.0,0.003909631,null],[1795437488.0,0.004192255,null],[1795437489.0,0.003958783,null],[1795437490.0,0.004321279,null],[1795437491.0,0.004136959,null]]');
INSERT INTO "runs" VALUES('written','STATE_DIRECTORY/runs/written','log',NULL,'fio','directory:/tmp/cliffwatch-5xhrfr7j','drive:254:0','d02990fc1f4c7d79d9400cc021d0dfd0e6119f6db74518941563da9eae786373','finished',1.79543750871025609974e+09,'cool_down','pass','["250 operations without an error in 4.9s of measurement, 99.99 % of the requested time, and the device took 128.6 MiB for the 3.9 MiB that the engine wrote.","Most of the drive''s traffic was not the engine''s: of 13.3 MiB written and read, 3.1 MiB (23.14 %) were. The rest is other processes'', or what the file system writes for itself, and the engine shared the drive with it."]',0,1.79543749552913188931e+09,1.79543749763886308665e+09,1.79543750871025609974e+09,1795437499.0,1795437504.0,5.0,NULL,'first',5,1795437504.0,2438,14,NULL,'{"bytes_per_second":836259.698,"device_write_seconds":0.00033505154639175254,"latency":"write","max_seconds":8.3967e-05,"onset":null,"operations_per_second":51.041,"p50_seconds":2.5087e-05,"p99_seconds":4.9151e-05}','[[1795437500.0,5.0687e-05,null],[1795437501.0,8.3967e-05,null],[1795437502.0,4.0447e-05,null],[1795437503.0,4.1471e-05,null],[1795437504.0,4.0959e-05,null]]');
CREATE TABLE schedule_firings (
	id INTEGER NOT NULL, 
	schedule_id VARCHAR NOT NULL, 
	due_at FLOAT NOT NULL, 
	outcome VARCHAR NOT NULL, 
	run_id VARCHAR, 
	detail VARCHAR NOT NULL, 
	CONSTRAINT pk_schedule_firings PRIMARY KEY (id), 
	CONSTRAINT fk_schedule_firings_schedule_id FOREIGN KEY(schedule_id) REFERENCES schedules (id) ON DELETE CASCADE, 
	CONSTRAINT uq_schedule_firings_schedule_id UNIQUE (schedule_id, due_at)
);
CREATE TABLE schedules (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	request TEXT NOT NULL, 
	"trigger" TEXT NOT NULL, 
	enabled BOOLEAN NOT NULL, 
	next_fire_at FLOAT, 
	created_at FLOAT NOT NULL, 
	created_by VARCHAR NOT NULL, 
	CONSTRAINT pk_schedules PRIMARY KEY (id), 
	CONSTRAINT uq_schedules_name UNIQUE (name)
);
INSERT INTO "schedules" VALUES('d2d9ea1f','yearly','{"durations":{"baseline":null,"cool_down":null,"soak":null,"warm_up":null,"window":null},"target":{"kind":"synthetic","name":"nowhere"},"workload":"steady"}','{"expression":"0 2 1 1 *","kind":"cron","time_zone":"Europe/Berlin"}',1,1798765200.0,1.79543750973514771454e+09,'first');
INSERT INTO "schedules" VALUES('8e02f9a7','once','{"durations":{"baseline":null,"cool_down":null,"soak":null,"warm_up":null,"window":null},"target":{"kind":"synthetic","name":"nowhere"},"workload":"steady"}','{"at":"2199-01-01T00:00:00Z","kind":"date"}',1,7226582400.0,1.79543750983829617506e+09,'first');
CREATE TABLE tokens (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	revoked_at FLOAT, 
	CONSTRAINT pk_tokens PRIMARY KEY (id)
);
INSERT INTO "tokens" VALUES('9fd679ea','first','admin','4cd7a8a20aa9ad0709df694f236c9b2694e5c9593498d4c58e55aff4bbad176c',1.79543746796409034731e+09,NULL);
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	digest VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	CONSTRAINT pk_workloads PRIMARY KEY (id), 
	CONSTRAINT uq_workloads_name UNIQUE (name, version)
);
INSERT INTO "workloads" VALUES(1,'append-streams',1,'{"description":"Many partitions on one drive: 64 streams append blocks of 16 and 64 KiB, an fdatasync after every eighth. 128 GiB of files, as fast as the drive takes them.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":64,"preset":"append-streams","size":"2GiB"},"name":"append-streams","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','a8fe73cfc43296176ba01f455fd13c48cd7b53aa17009ceda8350d8a14d01d99',1.79543746819983673097e+09);
INSERT INTO "workloads" VALUES(2,'drill',1,'{"description":"What Redpanda does to a disk, made to age the drive of a drill within minutes (docs/drill.md): 32 partitions in 16 KiB chunks past the page cache, synced before each acknowledgement, three quarters of the volume kept. Segments differ in length, so that freed space is used again in disorder. Nothing that was deleted is discarded here: whether the drive learns of it is for the mount option to say.","engine":"storage","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"batch_records":64,"partitions":32,"rate":"20MB","record_size":"1KiB","retention_ratio":0.75,"style":"redpanda","style_changes":{"preallocation":"16MiB","segment_jitter":0.5,"segment_size":"16MiB"},"verify_size":"64MiB"},"name":"drill","on_interruption":"resume","phases":{"baseline":"40s","cool_down":"2s","soak":"2m","steady":null,"warm_up":"10s"},"scrape":[],"stop_grace":"1m","version":1,"window":"1s"}','7a2e73ae25a9029334c9eae25693798df3f353e4bd1afac8b939ff25a9800faf',1.79543746820744919774e+09);
INSERT INTO "workloads" VALUES(3,'field-report-24h',1,'{"description":"The load under which three deployments out of three fell off a cliff: 1 GB a second of 1 KiB records to 288 partitions in Redpanda''s style, three quarters of the volume kept, for 24 hours. Wants a drive of its own that sustains such a rate.","engine":"storage","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"batch_records":64,"buffer_size":"64MiB","partitions":288,"rate":"1GB","record_size":"1KiB","retention_ratio":0.75,"style":"redpanda"},"name":"field-report-24h","on_interruption":"resume","phases":{"baseline":"1h30m","cool_down":"1m","soak":"22h","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','8bd91f822d9f959478f3981bcb0d652846b447dfa1952055c6a1237ddff45d2a',1.79543746821009922031e+09);
INSERT INTO "workloads" VALUES(4,'field-report-36h',1,'{"description":"The load under which three deployments out of three fell off a cliff: 1 GB a second of 1 KiB records to 288 partitions in Redpanda''s style, three quarters of the volume kept, for 36 hours. Wants a drive of its own that sustains such a rate.","engine":"storage","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"batch_records":64,"buffer_size":"64MiB","partitions":288,"rate":"1GB","record_size":"1KiB","retention_ratio":0.75,"style":"redpanda"},"name":"field-report-36h","on_interruption":"resume","phases":{"baseline":"1h30m","cool_down":"1m","soak":"1d10h","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','cf59576938b28977dbf72a270aa441cdad8c926a567297e824446ffa2d626342',1.79543746821264290809e+09);
INSERT INTO "workloads" VALUES(5,'kafka-raid-mixed',1,'{"description":"Stage 3 of a broker''s RAID test, made long: 24 sequential writers and 24 random readers at once, blocks of 1 to 16 KiB, past the page cache, on 192 GiB of files. For comparing RAID layouts.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":24,"preset":"kafka-raid-mixed","size":"4GiB"},"name":"kafka-raid-mixed","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','427fdc4f11ce8282442565e67fd59c7f33952ebbcde72b998e01fd0083847c9e',1.79543746821469736097e+09);
INSERT INTO "workloads" VALUES(6,'kafka-raid-randread',1,'{"description":"Stage 2 of a broker''s RAID test, made long: 24 jobs read blocks of 1 to 16 KiB at random, past the page cache, from 96 GiB of files that are laid out before the clock starts. For comparing RAID layouts.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":24,"preset":"kafka-raid-randread","size":"4GiB"},"name":"kafka-raid-randread","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','e0f0768e4af1c58c16535c8613f96db5f8e40034dab5cc4e40d93d2e59aaa2da',1.79543746821676540375e+09);
INSERT INTO "workloads" VALUES(7,'kafka-raid-write',1,'{"description":"Stage 1 of a broker''s RAID test, made long: 24 jobs write blocks of 1 to 16 KiB in sequence, each to a file of its own, past the page cache. 96 GiB of files, as fast as the drive takes them. For comparing RAID layouts.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":24,"preset":"kafka-raid-write","size":"4GiB"},"name":"kafka-raid-write","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','c7e6542fc3e9313e3495958c3edae511862f3c1a770a815792ef36aecf603d9a',1.79543746821858811379e+09);
INSERT INTO "workloads" VALUES(8,'laptop-broker',1,'{"description":"A broker of a laptop''s size: 8 MB a second of 1 KiB records to 24 partitions, written past the page cache and synced before each acknowledgement, 2 GiB kept, and a consumer that catches up. Too short and too small to judge a drive by.","engine":"storage","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"batch_records":16,"catch_up_rate":"2MB","partitions":24,"rate":"8MB","record_size":"1KiB","retention_size":"2GiB","style":"redpanda","style_changes":{"preallocation":"4MiB","segment_size":"16MiB"}},"name":"laptop-broker","on_interruption":"resume","phases":{"baseline":"2m","cool_down":"5s","soak":"10m","steady":null,"warm_up":"30s"},"scrape":[],"stop_grace":"1m","version":1,"window":"1s"}','abcbd11e54f4a3a9473ce0bfcba0451f1460863ad89ec16b36e8e63832eaf4c1',1.79543746822109675405e+09);
INSERT INTO "workloads" VALUES(9,'large-buffered-writes',1,'{"description":"Bulk ingest: 8 jobs write 1 MiB blocks through the page cache, an fsync after every 64 MiB so that the drive sees them. 128 GiB of files, as fast as the drive takes them.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":8,"preset":"large-buffered-writes","size":"16GiB"},"name":"large-buffered-writes","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','1bc1d48a0ec76379641243a4a1417b92c5c450951be5be36c372646caf9eb3e5',1.79543746822303223607e+09);
INSERT INTO "workloads" VALUES(10,'quick-soak',1,'{"description":"A demonstration of three minutes: 300 writes a second of 16 KiB, an fdatasync after each, and 200 random reads a second of 4 KiB, all past the page cache, on less than 1 GiB of files. In its last 45 seconds reads of 128 KiB fill the drive''s queue, as fast as the drive goes, so that an alert is seen on its way. Too short to judge a drive by.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"job":"[global]\nioengine=psync\ndirect=1\n\n[log]\nrw=write\nbs=16k\nfdatasync=1\nsize=256m\nnumjobs=3\nrate_iops=100\n\n[lookup]\nrw=randread\nbs=4k\nsize=64m\nrate_iops=200\n\n[burst]\nstartdelay=125s\nrw=randread\nioengine=libaio\niodepth=512\nbs=128k\nsize=64m\nnumjobs=2\n"},"name":"quick-soak","on_interruption":"resume","phases":{"baseline":"45s","cool_down":"5s","soak":"1m50s","steady":null,"warm_up":"15s"},"scrape":[],"stop_grace":"1m","version":1,"window":"1s"}','35c2417f0224e57dd989f936bf12c6300bfab2d9745131339fdc32de6b4c77b7',1.79543746822496867177e+09);
INSERT INTO "workloads" VALUES(11,'sequential-log',1,'{"description":"A commit log: one job appends 16 KiB blocks past the page cache, an fdatasync after each. One file of 64 GiB, as fast as the drive takes it.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":1,"preset":"sequential-log","size":"64GiB"},"name":"sequential-log","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','1709eba842e81af56f8fe81a1ed138499dbb1d3cd9ce46bf4c392349b7129e75',1.79543746822668552403e+09);
INSERT INTO "workloads" VALUES(12,'small-direct-writes',1,'{"description":"Every message acknowledged from flash: 16 jobs write 4 KiB past the page cache, an fdatasync after each. 64 GiB of files, as fast as the drive takes them.","engine":"fio","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{"jobs":16,"preset":"small-direct-writes","size":"4GiB"},"name":"small-direct-writes","on_interruption":"resume","phases":{"baseline":"1h","cool_down":"1m","soak":"1d","steady":null,"warm_up":"30m"},"scrape":[],"stop_grace":"1m","version":1,"window":"10s"}','e5e2ffc4884ac339401b06e00e2fdfd5471aee7aecb600b1893fa42a567e988e',1.79543746822839689249e+09);
INSERT INTO "workloads" VALUES(13,'steady',1,'{"description":"","engine":"synthetic","engine_restarts":5,"free_space_reserve_ratio":0.05,"limits":[],"load":{},"name":"steady","on_interruption":"resume","phases":{"baseline":"10s","cool_down":"0s","soak":"10s","steady":null,"warm_up":"0s"},"scrape":[],"stop_grace":"1m","version":1,"window":"1s"}','f1d1fdeabef77daa4d9073e2729e0ec4c7a5998f79b5e0c8d341d0536f356240',1.79543746832200241088e+09);
CREATE INDEX ix_runs_created_at_id ON runs (created_at, id);
CREATE INDEX ix_runs_schedule_id ON runs (schedule_id);
CREATE INDEX ix_runs_state_created_at_id ON runs (state, created_at, id);
CREATE INDEX ix_runs_workload_name_created_at_id ON runs (workload_name, created_at, id);
CREATE INDEX ix_findings_at_run_id_event_id ON findings (at, run_id, event_id);
CREATE INDEX ix_runs_verdict_created_at_id ON runs (verdict, created_at, id);
COMMIT;
