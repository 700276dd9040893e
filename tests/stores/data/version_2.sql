BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE adk_stream_call (
	approval_id VARCHAR(255) NOT NULL, 
	call_id VARCHAR(255) NOT NULL, 
	owner VARCHAR(255) NOT NULL, 
	chat_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(128) NOT NULL, 
	tool_name VARCHAR(255) NOT NULL, 
	arguments TEXT NOT NULL, 
	arguments_hash VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	expires_at FLOAT NOT NULL, 
	request_id VARCHAR(255) NOT NULL, 
	lane VARCHAR(255) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	approval BOOLEAN NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	title TEXT NOT NULL, 
	hint TEXT NOT NULL, 
	risk TEXT NOT NULL, 
	payload TEXT, 
	ui TEXT NOT NULL, 
	decided_at FLOAT, 
	decided_by VARCHAR(255), 
	decision_id VARCHAR(128), 
	reason TEXT, 
	result TEXT, 
	error TEXT, 
	done_at FLOAT, 
	fence INTEGER NOT NULL, 
	holder VARCHAR(64), 
	delivered_in VARCHAR(64), 
	idempotent BOOLEAN NOT NULL, 
	steps TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	schema TEXT, 
	edited TEXT, 
	edited_hash VARCHAR(64), 
	automatic BOOLEAN NOT NULL, 
	remember BOOLEAN NOT NULL, 
	decided_via VARCHAR(255), 
	trail TEXT NOT NULL, 
	PRIMARY KEY (approval_id)
);
INSERT INTO "adk_stream_call" VALUES('adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05','adk-7d58d94b-dd03-476c-8856-7a0b174d4270','local','payment','e-1977c536-0b3b-43e5-b334-0c3bda50504d','process_payment','{"amount":50,"recipient":"Hanako","currency":"USD"}','cd0ca38a762dece9e3372d309ac84f80f19c481dcb270b4194e4203908faaf1b',1.79496469550199055668e+09,1.79496829550199055668e+09,'adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05','demo@','tool',1,'pending','Send money','Nothing is sent unless you approve.','high',NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,0,'[]',0,'{"properties":{"amount":{"title":"Amount","type":"number"},"recipient":{"title":"Recipient","type":"string"},"currency":{"default":"USD","title":"Currency","type":"string"}},"required":["amount","recipient"],"title":"process_paymentParams","type":"object","additionalProperties":false}',NULL,NULL,0,0,NULL,'{"at":1794964695.5019906,"event":"open","by":"local","argumentsHash":"cd0ca38a762dece9e3372d309ac84f80f19c481dcb270b4194e4203908faaf1b","rememberable":true}
');
CREATE TABLE adk_stream_chunk (
	reply_id VARCHAR(64) NOT NULL, 
	seq INTEGER NOT NULL, 
	data TEXT, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (reply_id, seq)
);
INSERT INTO "adk_stream_chunk" VALUES('reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f',0,'{"type":"moment:own"}
{"type":"start","messageId":"msg-e5fa3ae4-6e62-4896-9ca8-54fab1acaa51"}',1.79496469542301297192e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f',2,'{"type":"start-step"}
{"type":"tool-input-start","toolCallId":"adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0","toolName":"get_weather"}
{"type":"tool-input-delta","toolCallId":"adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0","inputTextDelta":"{\"city\":\"Tokyo\"}"}
{"type":"tool-input-available","toolCallId":"adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0","toolName":"get_weather","input":{"city":"Tokyo"}}
{"type":"tool-output-available","toolCallId":"adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0","output":{"city":"Tokyo","temperature_c":18,"condition":"partly cloudy"}}',1.7949646954290077686e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f',7,'{"type":"finish-step"}
{"type":"start-step"}
{"type":"text-start","id":"1"}
{"type":"text-delta","id":"1","delta":"The"}
{"type":"text-delta","id":"1","delta":" weather"}
{"type":"text-delta","id":"1","delta":" in"}
{"type":"text-delta","id":"1","delta":" Tokyo:"}
{"type":"text-delta","id":"1","delta":" partly"}
{"type":"text-delta","id":"1","delta":" cloudy,"}
{"type":"text-delta","id":"1","delta":" 18"}
{"type":"text-delta","id":"1","delta":" °C."}
{"type":"text-end","id":"1"}
{"type":"finish-step"}
{"type":"finish","finishReason":"stop","messageMetadata":{"usage":{"inputTokens":614,"outputTokens":22,"totalTokens":636}}}',1.79496469545399236675e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f',21,NULL,1.79496469545399236675e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6',0,'{"type":"moment:own"}
{"type":"start","messageId":"msg-19c827e0-d6bc-4fd6-a838-aac3aa0bcbe7"}
{"type":"start-step"}
{"type":"tool-input-start","toolCallId":"adk-7d58d94b-dd03-476c-8856-7a0b174d4270","toolName":"process_payment"}
{"type":"tool-input-delta","toolCallId":"adk-7d58d94b-dd03-476c-8856-7a0b174d4270","inputTextDelta":"{\"amount\":50,\"recipient\":\"Hanako\",\"currency\":\"USD\"}"}
{"type":"tool-input-available","toolCallId":"adk-7d58d94b-dd03-476c-8856-7a0b174d4270","toolName":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"}}',1.79496469552098059652e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6',6,'{"type":"moment:held","approval_id":"adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05","call_id":"adk-7d58d94b-dd03-476c-8856-7a0b174d4270","tool_name":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"},"hint":"Nothing is sent unless you approve.","payload":null,"approval":true,"kind":"tool","request_id":"adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05","card":{"toolCallId":"adk-7d58d94b-dd03-476c-8856-7a0b174d4270","toolName":"process_payment","status":"pending","title":"Send money","hint":"Nothing is sent unless you approve.","risk":"high","createdAt":"2026-11-18T01:18:15.501Z","expiresAt":"2026-11-18T02:18:15.501Z","rememberable":true,"editable":true}}',1.79496469555698919297e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6',7,'{"type":"finish-step"}
{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":288,"outputTokens":24,"totalTokens":312}}}',1.79496469560599327093e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6',9,NULL,1.79496469560599327093e+09);
CREATE TABLE adk_stream_request (
	chat_id VARCHAR(128) NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	reply_id VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (chat_id, "key")
);
INSERT INTO "adk_stream_request" VALUES('weather','c700f8f3bc609532cbf8ef982b969e2feb13f0c728c6ccf136fc60daed7753a3','reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f',1.79496469464800214761e+09);
INSERT INTO "adk_stream_request" VALUES('payment','db72c333f77b2b1329a58a3c15a1944995c20d5594dda8a58bbd8e8f5eba6b77','reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6',1.79496469545998716356e+09);
CREATE TABLE adk_stream_schema (
	version INTEGER NOT NULL
);
INSERT INTO "adk_stream_schema" VALUES(2);
CREATE TABLE adk_stream_turn (
	chat_id VARCHAR(128) NOT NULL, 
	owner VARCHAR(255) NOT NULL, 
	reply_id VARCHAR(64) NOT NULL, 
	"key" TEXT NOT NULL, 
	running BOOLEAN NOT NULL, 
	stopping BOOLEAN NOT NULL, 
	holder VARCHAR(64) NOT NULL, 
	fence INTEGER NOT NULL, 
	lease_until FLOAT NOT NULL, 
	origin VARCHAR(64), 
	recoveries INTEGER NOT NULL, 
	PRIMARY KEY (chat_id)
);
INSERT INTO "adk_stream_turn" VALUES('weather','local','reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f','say:u-weather:bd46edd67940ee2233ecf59dbe4e44650759d8343532bca4c7583e1883c23b05',0,0,'1e7f49f222e348699f2b68a48b3cc0fa',1,1.7949647246469962597e+09,NULL,0);
INSERT INTO "adk_stream_turn" VALUES('payment','local','reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6','say:u-payment:fc8fe11820adffdf6f7f1a615e9523f6944f340dcc62fbf3c0e1b29ce21e0006',0,0,'1e7f49f222e348699f2b68a48b3cc0fa',1,1.79496472545998716355e+09,NULL,0);
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('demo','{}','2026-11-18 01:18:14');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('4f5249a4-6ef6-4ff5-b744-d8b90eb727d5','demo','local','weather','e-10963a09-8077-435a-8990-f5ceafc75c70','2026-11-18 01:18:15.288119','{"content": {"parts": [{"text": "What is the weather in Tokyo?"}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-e5fa3ae4-6e62-4896-9ca8-54fab1acaa51", "user": "u-weather", "reply": "reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f"}}, "invocation_id": "e-10963a09-8077-435a-8990-f5ceafc75c70", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "4f5249a4-6ef6-4ff5-b744-d8b90eb727d5", "timestamp": 1794964695.2881188}');
INSERT INTO "events" VALUES('c028e602-613c-4d33-82d0-d26192b7dc5d','demo','local','weather','e-10963a09-8077-435a-8990-f5ceafc75c70','2026-11-18 01:18:15.389347','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0", "args": {"city": "Tokyo"}, "name": "get_weather"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-e5fa3ae4-6e62-4896-9ca8-54fab1acaa51", "user": "u-weather", "reply": "reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f"}}, "usage_metadata": {"candidates_token_count": 10, "prompt_token_count": 290, "total_token_count": 300}, "invocation_id": "e-10963a09-8077-435a-8990-f5ceafc75c70", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "c028e602-613c-4d33-82d0-d26192b7dc5d", "timestamp": 1794964695.3893466}');
INSERT INTO "events" VALUES('c8342dae-de60-4917-b0d2-dac00d999f73','demo','local','weather','e-10963a09-8077-435a-8990-f5ceafc75c70','2026-11-18 01:18:15.405701','{"content": {"parts": [{"function_response": {"id": "adk-e9e4cdab-b0d5-4325-af05-fb3a9da00db0", "name": "get_weather", "response": {"city": "Tokyo", "temperature_c": 18, "condition": "partly cloudy"}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-e5fa3ae4-6e62-4896-9ca8-54fab1acaa51", "user": "u-weather", "reply": "reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f"}}, "invocation_id": "e-10963a09-8077-435a-8990-f5ceafc75c70", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "c8342dae-de60-4917-b0d2-dac00d999f73", "timestamp": 1794964695.405701}');
INSERT INTO "events" VALUES('7fe8a7fe-a2b7-4924-919c-752a47ac2758','demo','local','weather','e-10963a09-8077-435a-8990-f5ceafc75c70','2026-11-18 01:18:15.437463','{"model_version": "offline", "content": {"parts": [{"text": "The weather in Tokyo: partly cloudy, 18 \u00b0C."}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-e5fa3ae4-6e62-4896-9ca8-54fab1acaa51", "user": "u-weather", "reply": "reply-13d7dbde-fe9a-4b5c-a779-10d9de75019f"}}, "usage_metadata": {"candidates_token_count": 12, "prompt_token_count": 324, "total_token_count": 336}, "invocation_id": "e-10963a09-8077-435a-8990-f5ceafc75c70", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "7fe8a7fe-a2b7-4924-919c-752a47ac2758", "timestamp": 1794964695.437463}');
INSERT INTO "events" VALUES('10446c0c-55d1-45de-9e1a-d4a7fec29b7d','demo','local','payment','e-1977c536-0b3b-43e5-b334-0c3bda50504d','2026-11-18 01:18:15.469280','{"content": {"parts": [{"text": "Send 50 dollars to Hanako"}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-19c827e0-d6bc-4fd6-a838-aac3aa0bcbe7", "user": "u-payment", "reply": "reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6"}}, "invocation_id": "e-1977c536-0b3b-43e5-b334-0c3bda50504d", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "10446c0c-55d1-45de-9e1a-d4a7fec29b7d", "timestamp": 1794964695.46928}');
INSERT INTO "events" VALUES('3d25fde7-be39-4320-9455-3cb7b2eadf4a','demo','local','payment','e-1977c536-0b3b-43e5-b334-0c3bda50504d','2026-11-18 01:18:15.473861','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-7d58d94b-dd03-476c-8856-7a0b174d4270", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-19c827e0-d6bc-4fd6-a838-aac3aa0bcbe7", "user": "u-payment", "reply": "reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6"}}, "usage_metadata": {"candidates_token_count": 24, "prompt_token_count": 288, "total_token_count": 312}, "invocation_id": "e-1977c536-0b3b-43e5-b334-0c3bda50504d", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "3d25fde7-be39-4320-9455-3cb7b2eadf4a", "timestamp": 1794964695.4738612}');
INSERT INTO "events" VALUES('eaddd6a0-6422-43de-af34-c5ed68465628','demo','local','payment','e-1977c536-0b3b-43e5-b334-0c3bda50504d','2026-11-18 01:18:15.491158','{"content": {"parts": [{"function_call": {"id": "adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05", "args": {"originalFunctionCall": {"id": "adk-7d58d94b-dd03-476c-8856-7a0b174d4270", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}, "toolConfirmation": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}, "name": "adk_request_confirmation"}}], "role": "model"}, "custom_metadata": {"adk_stream": {"message": "msg-19c827e0-d6bc-4fd6-a838-aac3aa0bcbe7", "user": "u-payment", "reply": "reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6"}}, "invocation_id": "e-1977c536-0b3b-43e5-b334-0c3bda50504d", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": ["adk-5f27cc65-3a44-4e6c-a75a-c1e7453c5c05"], "id": "eaddd6a0-6422-43de-af34-c5ed68465628", "timestamp": 1794964695.491158}');
INSERT INTO "events" VALUES('58c879a6-c889-4cd7-a603-acf30c47a004','demo','local','payment','e-1977c536-0b3b-43e5-b334-0c3bda50504d','2026-11-18 01:18:15.491048','{"content": {"parts": [{"function_response": {"id": "adk-7d58d94b-dd03-476c-8856-7a0b174d4270", "name": "process_payment", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-19c827e0-d6bc-4fd6-a838-aac3aa0bcbe7", "user": "u-payment", "reply": "reply-f2c3012a-40e0-403d-b9d0-1bc9c9478ab6"}}, "invocation_id": "e-1977c536-0b3b-43e5-b334-0c3bda50504d", "author": "demo", "actions": {"skip_summarization": true, "state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"adk-7d58d94b-dd03-476c-8856-7a0b174d4270": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}}, "node_info": {"path": "demo@1"}, "id": "58c879a6-c889-4cd7-a603-acf30c47a004", "timestamp": 1794964695.491048}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('demo','local','weather','{"adk_stream_title": "What is the weather in Tokyo?", "adk_stream_created": 1794964694.6531491}','2026-11-18 01:18:14.675217','2026-11-18 01:18:15.437463');
INSERT INTO "sessions" VALUES('demo','local','payment','{"adk_stream_title": "Send 50 dollars to Hanako", "adk_stream_created": 1794964695.4648066}','2026-11-18 01:18:15.465642','2026-11-18 01:18:15.491048');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('demo','local','{}','2026-11-18 01:18:14');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
CREATE INDEX adk_stream_turn_lease ON adk_stream_turn (running, lease_until);
CREATE INDEX adk_stream_turn_owner ON adk_stream_turn (owner, running);
CREATE INDEX adk_stream_request_reply ON adk_stream_request (reply_id);
CREATE INDEX adk_stream_call_owner ON adk_stream_call (owner, state);
CREATE INDEX adk_stream_call_expiry ON adk_stream_call (state, expires_at);
CREATE INDEX adk_stream_call_chat ON adk_stream_call (chat_id, created_at);
CREATE INDEX adk_stream_call_undelivered ON adk_stream_call (state) WHERE delivered_in IS NULL;
CREATE INDEX adk_stream_chunk_age ON adk_stream_chunk (created_at);
COMMIT;
