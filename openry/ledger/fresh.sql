CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE approvals (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	asked_at TEXT NOT NULL,
	kind TEXT DEFAULT 'step' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	command_id BIGINT,
	question TEXT DEFAULT '' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	state TEXT DEFAULT 'pending' NOT NULL,
	answered_at TEXT,
	answered_by TEXT DEFAULT '' NOT NULL,
	comment TEXT DEFAULT '' NOT NULL,
	CONSTRAINT ck_approvals_answered CHECK ((state = 'pending') = (answered_at IS NULL)),
	CONSTRAINT ck_approvals_kind CHECK (kind IN ('step', 'command', 'edit', 'unknown_outcome', 'other')),
	CONSTRAINT ck_approvals_state CHECK (state IN ('pending', 'approved', 'rejected', 'expired'))
);

CREATE INDEX ix_approvals_pending ON approvals (asked_at) WHERE state = 'pending';

CREATE INDEX ix_approvals_run_id ON approvals (run_id);

CREATE TABLE commands_log (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id TEXT NOT NULL,
	workflow TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	seq BIGINT NOT NULL,
	command TEXT NOT NULL,
	fingerprint TEXT DEFAULT '' NOT NULL,
	shell TEXT DEFAULT '' NOT NULL,
	cwd TEXT DEFAULT '' NOT NULL,
	verdict TEXT DEFAULT 'allow' NOT NULL,
	rule TEXT DEFAULT '' NOT NULL,
	ending TEXT DEFAULT 'started' NOT NULL,
	exit_code INTEGER,
	stdout TEXT DEFAULT '' NOT NULL,
	stderr TEXT DEFAULT '' NOT NULL,
	note TEXT DEFAULT '' NOT NULL,
	stdout_bytes BIGINT DEFAULT 0 NOT NULL,
	stderr_bytes BIGINT DEFAULT 0 NOT NULL,
	stdout_digest TEXT DEFAULT '' NOT NULL,
	stderr_digest TEXT DEFAULT '' NOT NULL,
	spill_path TEXT DEFAULT '' NOT NULL,
	duration_ms BIGINT,
	timestamp TEXT NOT NULL,
	started_at TEXT NOT NULL,
	ended_at TEXT,
	pid BIGINT,
	pid_started_at TEXT DEFAULT '' NOT NULL,
	host TEXT DEFAULT '' NOT NULL, started_hash TEXT DEFAULT '' NOT NULL, ended_hash TEXT DEFAULT '' NOT NULL,
	CONSTRAINT ck_commands_log_denied CHECK (ending IN ('refused', 'braked') OR verdict <> 'deny'),
	CONSTRAINT ck_commands_log_ended CHECK ((ending = 'started') = (ended_at IS NULL)),
	CONSTRAINT ck_commands_log_ending CHECK (ending IN ('started', 'exited', 'signalled', 'timeout', 'refused', 'braked', 'interrupted', 'lost')),
	CONSTRAINT ck_commands_log_exit_code CHECK ((ending IN ('started', 'lost')) = (exit_code IS NULL)),
	CONSTRAINT ck_commands_log_verdict CHECK (verdict IN ('allow', 'confirm', 'deny')),
	CONSTRAINT uq_commands_log_run_id_seq UNIQUE (run_id, seq)
);

CREATE INDEX ix_commands_log_fingerprint ON commands_log (fingerprint);

CREATE INDEX ix_commands_log_instance_id_step_id ON commands_log (instance_id, step_id);

CREATE INDEX ix_commands_log_started ON commands_log (started_at) WHERE ending = 'started';

CREATE INDEX ix_commands_log_started_at ON commands_log (started_at);

CREATE TABLE events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	kind TEXT DEFAULT 'transition' NOT NULL,
	old TEXT DEFAULT '' NOT NULL,
	new TEXT DEFAULT '' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	actor TEXT DEFAULT '' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL
, hash TEXT DEFAULT '' NOT NULL);

CREATE INDEX ix_events_instance_id ON events (instance_id);

CREATE INDEX ix_events_run_id ON events (run_id);

CREATE TABLE llm_calls (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	session_id TEXT DEFAULT '' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	round BIGINT DEFAULT 0 NOT NULL,
	purpose TEXT DEFAULT '' NOT NULL,
	model TEXT DEFAULT '' NOT NULL,
	"key" TEXT DEFAULT '' NOT NULL,
	attempt BIGINT DEFAULT 1 NOT NULL,
	state TEXT DEFAULT 'settled' NOT NULL,
	request JSON,
	reply TEXT DEFAULT '' NOT NULL,
	tool_calls JSON,
	finish_reason TEXT DEFAULT '' NOT NULL,
	prompt_tokens BIGINT DEFAULT 0 NOT NULL,
	completion_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_usd FLOAT DEFAULT 0 NOT NULL,
	cached BOOLEAN DEFAULT 0 NOT NULL,
	duration_ms BIGINT DEFAULT 0 NOT NULL,
	error_code TEXT DEFAULT '' NOT NULL,
	error TEXT DEFAULT '' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	ended_at TEXT,
	CONSTRAINT ck_llm_calls_state CHECK (state IN ('reserved', 'settled', 'failed'))
);

CREATE INDEX ix_llm_calls_key ON llm_calls ("key");

CREATE INDEX ix_llm_calls_run_id ON llm_calls (run_id);

CREATE INDEX ix_llm_calls_session_id ON llm_calls (session_id);

CREATE TABLE loop_sessions (
	session_id TEXT NOT NULL,
	name TEXT DEFAULT '' NOT NULL,
	task TEXT NOT NULL,
	directory TEXT DEFAULT '' NOT NULL,
	state TEXT DEFAULT 'running' NOT NULL,
	phase TEXT DEFAULT '' NOT NULL,
	outcome TEXT DEFAULT '' NOT NULL,
	stop TEXT DEFAULT '' NOT NULL,
	settings JSON DEFAULT '{}' NOT NULL,
	spec JSON DEFAULT '{}' NOT NULL,
	acceptance JSON DEFAULT '[]' NOT NULL,
	acceptance_hash TEXT DEFAULT '' NOT NULL,
	acceptance_origin TEXT DEFAULT '' NOT NULL,
	acceptance_strength TEXT DEFAULT '' NOT NULL,
	weak_because JSON DEFAULT '[]' NOT NULL,
	goals JSON DEFAULT '[]' NOT NULL,
	workflow_text TEXT DEFAULT '' NOT NULL,
	workflow_path TEXT DEFAULT '' NOT NULL,
	best_round BIGINT DEFAULT 0 NOT NULL,
	rounds BIGINT DEFAULT 0 NOT NULL,
	edits BIGINT DEFAULT 0 NOT NULL,
	tokens BIGINT DEFAULT 0 NOT NULL,
	cost_usd FLOAT DEFAULT 0 NOT NULL,
	seconds FLOAT DEFAULT 0 NOT NULL,
	snapshot_id TEXT DEFAULT '' NOT NULL,
	results JSON DEFAULT '[]' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	pid BIGINT,
	pid_started_at TEXT DEFAULT '' NOT NULL,
	host TEXT DEFAULT '' NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT,
	ended_at TEXT,
	PRIMARY KEY (session_id),
	CONSTRAINT ck_loop_sessions_acceptance_strength CHECK (acceptance_strength IN ('', 'strong', 'weak')),
	CONSTRAINT ck_loop_sessions_ended CHECK ((state = 'ended') = (ended_at IS NOT NULL)),
	CONSTRAINT ck_loop_sessions_state CHECK (state IN ('running', 'interrupted', 'waiting', 'ended'))
);

CREATE TABLE outputs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	command_id BIGINT,
	stream TEXT DEFAULT 'stdout' NOT NULL,
	path TEXT NOT NULL,
	bytes BIGINT DEFAULT 0 NOT NULL,
	lines BIGINT DEFAULT 0 NOT NULL,
	tokens BIGINT DEFAULT 0 NOT NULL,
	digest TEXT DEFAULT '' NOT NULL,
	compressed BOOLEAN DEFAULT 0 NOT NULL,
	deleted_at TEXT,
	CONSTRAINT ck_outputs_stream CHECK (stream IN ('stdout', 'stderr', 'both'))
);

CREATE INDEX ix_outputs_run_id ON outputs (run_id);

CREATE TABLE payloads (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	workflow TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	status TEXT DEFAULT '' NOT NULL,
	payload JSON DEFAULT '{}' NOT NULL,
	accepted BOOLEAN DEFAULT 1 NOT NULL
);

CREATE INDEX ix_payloads_run_id ON payloads (run_id);

CREATE TABLE retries (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	workflow TEXT DEFAULT '' NOT NULL,
	big_step TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	next_run_id TEXT DEFAULT '' NOT NULL,
	level TEXT DEFAULT 'sub_step' NOT NULL,
	number BIGINT DEFAULT 1 NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	delay_s FLOAT DEFAULT 0 NOT NULL,
	CONSTRAINT ck_retries_level CHECK (level IN ('sub_step', 'big_step', 'requeue', 'resume'))
);

CREATE INDEX ix_retries_instance_id ON retries (instance_id);

CREATE TABLE snapshots (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	snapshot_id TEXT NOT NULL,
	session_id TEXT DEFAULT '' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	run_id TEXT DEFAULT '' NOT NULL,
	big_step TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	workspace TEXT DEFAULT '' NOT NULL,
	files BIGINT DEFAULT 0 NOT NULL,
	bytes BIGINT DEFAULT 0 NOT NULL,
	seconds FLOAT DEFAULT 0 NOT NULL,
	state JSON DEFAULT '{}' NOT NULL
);

CREATE INDEX ix_snapshots_instance_id ON snapshots (instance_id);

CREATE INDEX ix_snapshots_snapshot_id ON snapshots (snapshot_id);

CREATE TABLE workers (
	worker_id TEXT NOT NULL,
	role TEXT DEFAULT 'worker' NOT NULL,
	pool TEXT DEFAULT '' NOT NULL,
	host TEXT DEFAULT '' NOT NULL,
	pid BIGINT,
	pid_started_at TEXT DEFAULT '' NOT NULL,
	state TEXT DEFAULT 'running' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	started_at TEXT NOT NULL,
	heartbeat_at TEXT,
	lease_until TEXT,
	ended_at TEXT,
	PRIMARY KEY (worker_id),
	CONSTRAINT ck_workers_role CHECK (role IN ('orchestrator', 'worker')),
	CONSTRAINT ck_workers_state CHECK (state IN ('running', 'stopping', 'stopped', 'lost'))
);

CREATE INDEX ix_workers_live ON workers (lease_until) WHERE state IN ('running', 'stopping');

CREATE TABLE workflow_instances (
	instance_id TEXT NOT NULL,
	workflow TEXT DEFAULT '' NOT NULL,
	kind TEXT DEFAULT 'workflow' NOT NULL,
	state TEXT DEFAULT 'queued' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	"plan" TEXT NOT NULL,
	plan_hash TEXT NOT NULL,
	source_file TEXT DEFAULT '' NOT NULL,
	interpreter_version TEXT DEFAULT '' NOT NULL,
	inputs JSON DEFAULT '{}' NOT NULL,
	payload JSON DEFAULT '{}' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	workspace TEXT DEFAULT '' NOT NULL,
	drafted BOOLEAN DEFAULT 0 NOT NULL,
	session_id TEXT DEFAULT '' NOT NULL,
	parent_instance_id TEXT,
	replay_of TEXT,
	replay_from_step TEXT DEFAULT '' NOT NULL,
	current_step TEXT DEFAULT '' NOT NULL,
	big_step_retry_count BIGINT DEFAULT 0 NOT NULL,
	cancel_requested BOOLEAN DEFAULT 0 NOT NULL,
	epoch BIGINT DEFAULT 0 NOT NULL,
	owner TEXT DEFAULT '' NOT NULL,
	lease_until TEXT,
	deadline_at TEXT,
	tokens BIGINT DEFAULT 0 NOT NULL,
	cost_usd FLOAT DEFAULT 0 NOT NULL,
	created_at TEXT NOT NULL,
	started_at TEXT,
	ended_at TEXT,
	updated_at TEXT,
	PRIMARY KEY (instance_id),
	CONSTRAINT ck_workflow_instances_ended CHECK ((state IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
	CONSTRAINT ck_workflow_instances_kind CHECK (kind IN ('workflow', 'composition')),
	CONSTRAINT ck_workflow_instances_state CHECK (state IN ('queued', 'running', 'suspended', 'completed', 'failed', 'cancelled'))
);

CREATE INDEX ix_workflow_instances_created_at ON workflow_instances (created_at);

CREATE INDEX ix_workflow_instances_live ON workflow_instances (state) WHERE state IN ('queued', 'running', 'suspended');

CREATE TABLE loop_edits (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	session_id TEXT NOT NULL,
	round INTEGER NOT NULL,
	position BIGINT DEFAULT 0 NOT NULL,
	operation TEXT NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	arguments JSON DEFAULT '{}' NOT NULL,
	origin TEXT DEFAULT '' NOT NULL,
	signature TEXT DEFAULT '' NOT NULL,
	diff TEXT DEFAULT '' NOT NULL,
	before_hash TEXT DEFAULT '' NOT NULL,
	after_hash TEXT DEFAULT '' NOT NULL,
	gates JSON DEFAULT '[]' NOT NULL,
	verdict TEXT DEFAULT 'proposed' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	reviewer TEXT DEFAULT '' NOT NULL,
	reviewed_at TEXT,
	data JSON DEFAULT '{}' NOT NULL,
	CONSTRAINT ck_loop_edits_verdict CHECK (verdict IN ('proposed', 'accepted', 'rejected', 'waiting', 'pruned', 'reverted')),
	CONSTRAINT fk_loop_edits_session_id FOREIGN KEY(session_id) REFERENCES loop_sessions (session_id) ON DELETE CASCADE,
	CONSTRAINT uq_loop_edits_session_id_round_position UNIQUE (session_id, round, position)
);

CREATE INDEX ix_loop_edits_signature ON loop_edits (signature);

CREATE TABLE loop_rounds (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	kind TEXT DEFAULT '' NOT NULL,
	phase TEXT DEFAULT '' NOT NULL,
	workflow_text TEXT DEFAULT '' NOT NULL,
	workflow_hash TEXT DEFAULT '' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	snapshot_before TEXT DEFAULT '' NOT NULL,
	snapshot_after TEXT DEFAULT '' NOT NULL,
	outcome TEXT DEFAULT '' NOT NULL,
	signature TEXT DEFAULT '' NOT NULL,
	failure_class TEXT DEFAULT '' NOT NULL,
	diagnosis JSON,
	verdict TEXT DEFAULT '' NOT NULL,
	gates JSON DEFAULT '[]' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	tokens BIGINT DEFAULT 0 NOT NULL,
	cost_usd FLOAT DEFAULT 0 NOT NULL,
	seconds FLOAT DEFAULT 0 NOT NULL,
	started_at TEXT NOT NULL,
	ended_at TEXT,
	CONSTRAINT fk_loop_rounds_session_id FOREIGN KEY(session_id) REFERENCES loop_sessions (session_id) ON DELETE CASCADE,
	CONSTRAINT uq_loop_rounds_session_id_number UNIQUE (session_id, number)
);

CREATE TABLE task_state (
	run_id TEXT NOT NULL,
	workflow_instance_id TEXT,
	workflow TEXT DEFAULT '' NOT NULL,
	big_step TEXT DEFAULT '' NOT NULL,
	step_id TEXT DEFAULT '' NOT NULL,
	item TEXT DEFAULT '' NOT NULL,
	kind TEXT DEFAULT '' NOT NULL,
	attempt BIGINT DEFAULT 1 NOT NULL,
	previous_run_id TEXT,
	status TEXT DEFAULT 'queued' NOT NULL,
	reported_status TEXT DEFAULT '' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	validation_status TEXT DEFAULT '' NOT NULL,
	payload JSON DEFAULT '{}' NOT NULL,
	result JSON,
	data JSON DEFAULT '{}' NOT NULL,
	settled BOOLEAN DEFAULT 0 NOT NULL,
	cancel_requested BOOLEAN DEFAULT 0 NOT NULL,
	brake TEXT DEFAULT '' NOT NULL,
	brake_reason TEXT DEFAULT '' NOT NULL,
	braked_at TEXT,
	sub_step_retry_count BIGINT DEFAULT 0 NOT NULL,
	big_step_retry_count BIGINT DEFAULT 0 NOT NULL,
	requeue_count BIGINT DEFAULT 0 NOT NULL,
	max_tool_calls BIGINT DEFAULT 0 NOT NULL,
	tool_calls BIGINT DEFAULT 0 NOT NULL,
	max_output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_overflow BOOLEAN DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	tokens BIGINT DEFAULT 0 NOT NULL,
	cost_usd FLOAT DEFAULT 0 NOT NULL,
	epoch BIGINT DEFAULT 0 NOT NULL,
	owner TEXT DEFAULT '' NOT NULL,
	lease_until TEXT,
	heartbeat_at TEXT,
	pid BIGINT,
	pgid BIGINT,
	pid_started_at TEXT DEFAULT '' NOT NULL,
	host TEXT DEFAULT '' NOT NULL,
	token_hash TEXT DEFAULT '' NOT NULL,
	snapshot_id TEXT DEFAULT '' NOT NULL,
	not_before TEXT,
	deadline_at TEXT,
	created_at TEXT NOT NULL,
	started_at TEXT,
	ended_at TEXT,
	updated_at TEXT,
	PRIMARY KEY (run_id),
	CONSTRAINT ck_task_state_attempt CHECK (attempt >= 1),
	CONSTRAINT ck_task_state_brake CHECK (brake IN ('', 'call_limit', 'timeout', 'budget', 'loop', 'other')),
	CONSTRAINT ck_task_state_status CHECK (status IN ('queued', 'in_progress', 'completed', 'validated', 'done', 'failed', 'cancelled', 'lost', 'overflow', 'overflow_processing', 'resumed', 'waiting_approval', 'skipped', 'dropped')),
	CONSTRAINT ck_task_state_tool_calls CHECK (tool_calls >= 0 AND max_tool_calls >= 0),
	CONSTRAINT ck_task_state_validation_status CHECK (validation_status IN ('', 'pending', 'passed', 'failed')),
	CONSTRAINT fk_task_state_workflow_instance_id FOREIGN KEY(workflow_instance_id) REFERENCES workflow_instances (instance_id) ON DELETE CASCADE
);

CREATE INDEX ix_task_state_open ON task_state (status, not_before) WHERE settled = 0;

CREATE INDEX ix_task_state_workflow_instance_id_step_id_attempt ON task_state (workflow_instance_id, step_id, attempt);

CREATE UNIQUE INDEX uq_task_state_active ON task_state (workflow_instance_id, big_step, step_id, item) WHERE status IN ('queued', 'in_progress', 'waiting_approval', 'overflow_processing');

CREATE TABLE validation_results (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	run_id TEXT NOT NULL,
	position BIGINT DEFAULT 0 NOT NULL,
	rule TEXT DEFAULT '' NOT NULL,
	passed BOOLEAN NOT NULL,
	expected TEXT DEFAULT '' NOT NULL,
	actual TEXT DEFAULT '' NOT NULL,
	message TEXT DEFAULT '' NOT NULL,
	vacuous BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT fk_validation_results_run_id FOREIGN KEY(run_id) REFERENCES task_state (run_id) ON DELETE CASCADE
);

CREATE INDEX ix_validation_results_run_id ON validation_results (run_id);

CREATE TABLE schedules (
	name TEXT NOT NULL,
	workflow TEXT DEFAULT '' NOT NULL,
	cron TEXT DEFAULT '' NOT NULL,
	zone TEXT DEFAULT 'UTC' NOT NULL,
	catch_up TEXT DEFAULT 'none' NOT NULL,
	overlap TEXT DEFAULT 'skip' NOT NULL,
	inputs JSON DEFAULT '{}' NOT NULL,
	workspace TEXT DEFAULT '' NOT NULL,
	paused BOOLEAN DEFAULT 0 NOT NULL,
	created_at TEXT NOT NULL,
	next_at TEXT,
	PRIMARY KEY (name),
	CONSTRAINT ck_schedules_catch_up CHECK (catch_up IN ('none', 'last', 'all')),
	CONSTRAINT ck_schedules_overlap CHECK (overlap IN ('skip', 'queue', 'cancel'))
);

CREATE TABLE firings (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	schedule TEXT DEFAULT '' NOT NULL,
	due_at TEXT DEFAULT '' NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	outcome TEXT DEFAULT 'started' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	CONSTRAINT uq_firings_schedule_due_at UNIQUE (schedule, due_at),
	CONSTRAINT ck_firings_outcome CHECK (outcome IN ('started', 'skipped', 'missed', 'failed'))
);

CREATE INDEX ix_firings_instance_id ON firings (instance_id);

CREATE TABLE notices (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	instance_id TEXT DEFAULT '' NOT NULL,
	about TEXT DEFAULT '' NOT NULL,
	state TEXT DEFAULT 'pending' NOT NULL,
	reason TEXT DEFAULT '' NOT NULL,
	ended_at TEXT,
	CONSTRAINT ck_notices_state CHECK (state IN ('pending', 'sent', 'failed'))
);

CREATE INDEX ix_notices_pending ON notices (id) WHERE state = 'pending';

CREATE TABLE checkpoints (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at TEXT NOT NULL,
	kind TEXT DEFAULT 'prune' NOT NULL,
	data JSON DEFAULT '{}' NOT NULL,
	hash TEXT DEFAULT '' NOT NULL,
	CONSTRAINT ck_checkpoints_kind CHECK (kind IN ('begin', 'prune', 'import'))
);

CREATE INDEX ix_events_head ON events (id) WHERE kind = 'head'
