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
INSERT INTO "adk_stream_call" VALUES('adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14','adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a','local','payment','e-079bddd7-1c67-4783-b581-d6284e776555','process_payment','{"amount":50,"recipient":"Hanako","currency":"USD"}','cd0ca38a762dece9e3372d309ac84f80f19c481dcb270b4194e4203908faaf1b',1.79496306416000413891e+09,1.79496666416000413887e+09,'adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14','demo@','tool',1,'pending','Send money','Nothing is sent unless you approve.','high',NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,0,'[]',0,'{"properties":{"amount":{"title":"Amount","type":"number"},"recipient":{"title":"Recipient","type":"string"},"currency":{"default":"USD","title":"Currency","type":"string"}},"required":["amount","recipient"],"title":"process_paymentParams","type":"object","additionalProperties":false}',NULL,NULL,0,0,NULL,'{"at":1794963064.1600041,"event":"open","by":"local","argumentsHash":"cd0ca38a762dece9e3372d309ac84f80f19c481dcb270b4194e4203908faaf1b","rememberable":true}
');
CREATE TABLE adk_stream_chunk (
	reply_id VARCHAR(64) NOT NULL, 
	seq INTEGER NOT NULL, 
	data TEXT, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (reply_id, seq)
);
INSERT INTO "adk_stream_chunk" VALUES('reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e',0,'{"type":"moment:own"}
{"type":"start","messageId":"msg-e03fa3dd-db19-4ebe-abd9-80b511658656"}',1.79496306411200618746e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e',2,'{"type":"start-step"}
{"type":"tool-input-start","toolCallId":"adk-6c0f8598-b50b-4665-b70f-398c1d0b5912","toolName":"get_weather"}
{"type":"tool-input-delta","toolCallId":"adk-6c0f8598-b50b-4665-b70f-398c1d0b5912","inputTextDelta":"{\"city\":\"Tokyo\"}"}
{"type":"tool-input-available","toolCallId":"adk-6c0f8598-b50b-4665-b70f-398c1d0b5912","toolName":"get_weather","input":{"city":"Tokyo"}}
{"type":"tool-output-available","toolCallId":"adk-6c0f8598-b50b-4665-b70f-398c1d0b5912","output":{"city":"Tokyo","temperature_c":18,"condition":"partly cloudy"}}',1.79496306411699509618e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e',7,'{"type":"finish-step"}
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
{"type":"finish","finishReason":"stop","messageMetadata":{"usage":{"inputTokens":614,"outputTokens":22,"totalTokens":636}}}',1.794963064128018856e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e',21,NULL,1.794963064128018856e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5',0,'{"type":"moment:own"}
{"type":"start","messageId":"msg-ebe3244c-4563-47eb-9cf6-6199c0f5f3b5"}
{"type":"start-step"}
{"type":"tool-input-start","toolCallId":"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a","toolName":"process_payment"}
{"type":"tool-input-delta","toolCallId":"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a","inputTextDelta":"{\"amount\":50,\"recipient\":\"Hanako\",\"currency\":\"USD\"}"}
{"type":"tool-input-available","toolCallId":"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a","toolName":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"}}
{"type":"moment:held","approval_id":"adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14","call_id":"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a","tool_name":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"},"hint":"Nothing is sent unless you approve.","payload":null,"approval":true,"kind":"tool","request_id":"adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14","card":{"toolCallId":"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a","toolName":"process_payment","status":"pending","title":"Send money","hint":"Nothing is sent unless you approve.","risk":"high","createdAt":"2026-11-18T00:51:04.160Z","expiresAt":"2026-11-18T01:51:04.160Z","rememberable":true,"editable":true}}',1.79496306416298151021e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5',7,'{"type":"finish-step"}
{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":289,"outputTokens":24,"totalTokens":313}}}',1.79496306416801071166e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5',9,NULL,1.79496306416801071166e+09);
CREATE TABLE adk_stream_request (
	chat_id VARCHAR(128) NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	reply_id VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (chat_id, "key")
);
INSERT INTO "adk_stream_request" VALUES('weather','c700f8f3bc609532cbf8ef982b969e2feb13f0c728c6ccf136fc60daed7753a3','reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e',1.79496306390098333358e+09);
INSERT INTO "adk_stream_request" VALUES('payment','53b3f1a936f859c9bc12b238b31e81e008d76367f46c3cdfe03bf86084798e46','reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5',1794963064.14202);
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
INSERT INTO "adk_stream_turn" VALUES('weather','local','reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e','say:u-weather:bd46edd67940ee2233ecf59dbe4e44650759d8343532bca4c7583e1883c23b05',0,0,'26c62836456e459ebd5d572ce85cd10b',1,1.79496309390001773835e+09,NULL,0);
INSERT INTO "adk_stream_turn" VALUES('payment','local','reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5','say:u-payment:24027bc7ef33d90bb811b442572ea5b0d6d51cb4f85be294bb7a9e4440bca747',0,0,'26c62836456e459ebd5d572ce85cd10b',1,1794963094.14202,NULL,0);
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('demo','{}','2026-11-18 00:51:03');
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
INSERT INTO "events" VALUES('302e9f01-6054-4452-8e88-5f606dc52a0d','demo','local','weather','e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a','2026-11-18 00:51:04.063623','{"content": {"parts": [{"text": "What is the weather in Tokyo?"}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-e03fa3dd-db19-4ebe-abd9-80b511658656", "user": "u-weather", "reply": "reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e"}}, "invocation_id": "e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "302e9f01-6054-4452-8e88-5f606dc52a0d", "timestamp": 1794963064.0636227}');
INSERT INTO "events" VALUES('728347f3-4b43-4108-aa0a-9f55030c0e6e','demo','local','weather','e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a','2026-11-18 00:51:04.104498','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-6c0f8598-b50b-4665-b70f-398c1d0b5912", "args": {"city": "Tokyo"}, "name": "get_weather"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-e03fa3dd-db19-4ebe-abd9-80b511658656", "user": "u-weather", "reply": "reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e"}}, "usage_metadata": {"candidates_token_count": 10, "prompt_token_count": 290, "total_token_count": 300}, "invocation_id": "e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "728347f3-4b43-4108-aa0a-9f55030c0e6e", "timestamp": 1794963064.104498}');
INSERT INTO "events" VALUES('00af7bd2-b2b1-4a43-902d-0f574765797e','demo','local','weather','e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a','2026-11-18 00:51:04.114642','{"content": {"parts": [{"function_response": {"id": "adk-6c0f8598-b50b-4665-b70f-398c1d0b5912", "name": "get_weather", "response": {"city": "Tokyo", "temperature_c": 18, "condition": "partly cloudy"}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-e03fa3dd-db19-4ebe-abd9-80b511658656", "user": "u-weather", "reply": "reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e"}}, "invocation_id": "e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "00af7bd2-b2b1-4a43-902d-0f574765797e", "timestamp": 1794963064.114642}');
INSERT INTO "events" VALUES('a2ee8db1-97a0-4d8c-a457-8c98c5b88272','demo','local','weather','e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a','2026-11-18 00:51:04.120374','{"model_version": "offline", "content": {"parts": [{"text": "The weather in Tokyo: partly cloudy, 18 \u00b0C."}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-e03fa3dd-db19-4ebe-abd9-80b511658656", "user": "u-weather", "reply": "reply-06afcc63-5325-4b2b-a0bd-89e4a5f4ad6e"}}, "usage_metadata": {"candidates_token_count": 12, "prompt_token_count": 324, "total_token_count": 336}, "invocation_id": "e-50e566c5-a9e4-4c3d-b3fd-9573e45a993a", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "a2ee8db1-97a0-4d8c-a457-8c98c5b88272", "timestamp": 1794963064.1203742}');
INSERT INTO "events" VALUES('2ab03636-74b0-4415-a231-78ae94052176','demo','local','payment','e-079bddd7-1c67-4783-b581-d6284e776555','2026-11-18 00:51:04.146531','{"content": {"parts": [{"text": "Pay 50 dollars to Hanako."}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-ebe3244c-4563-47eb-9cf6-6199c0f5f3b5", "user": "u-payment", "reply": "reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5"}}, "invocation_id": "e-079bddd7-1c67-4783-b581-d6284e776555", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "2ab03636-74b0-4415-a231-78ae94052176", "timestamp": 1794963064.1465306}');
INSERT INTO "events" VALUES('7abfe20d-0732-4af0-941c-4930d16f1678','demo','local','payment','e-079bddd7-1c67-4783-b581-d6284e776555','2026-11-18 00:51:04.151250','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-ebe3244c-4563-47eb-9cf6-6199c0f5f3b5", "user": "u-payment", "reply": "reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5"}}, "usage_metadata": {"candidates_token_count": 24, "prompt_token_count": 289, "total_token_count": 313}, "invocation_id": "e-079bddd7-1c67-4783-b581-d6284e776555", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "7abfe20d-0732-4af0-941c-4930d16f1678", "timestamp": 1794963064.1512501}');
INSERT INTO "events" VALUES('c543d94c-2d01-42ce-841b-20d600d235c1','demo','local','payment','e-079bddd7-1c67-4783-b581-d6284e776555','2026-11-18 00:51:04.157865','{"content": {"parts": [{"function_call": {"id": "adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14", "args": {"originalFunctionCall": {"id": "adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}, "toolConfirmation": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}, "name": "adk_request_confirmation"}}], "role": "model"}, "custom_metadata": {"adk_stream": {"message": "msg-ebe3244c-4563-47eb-9cf6-6199c0f5f3b5", "user": "u-payment", "reply": "reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5"}}, "invocation_id": "e-079bddd7-1c67-4783-b581-d6284e776555", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": ["adk-4b1063e9-dd9e-495f-a881-9e4d60c35d14"], "id": "c543d94c-2d01-42ce-841b-20d600d235c1", "timestamp": 1794963064.1578648}');
INSERT INTO "events" VALUES('c13ff0fd-f829-4b59-b8ef-15c0f59f104a','demo','local','payment','e-079bddd7-1c67-4783-b581-d6284e776555','2026-11-18 00:51:04.157749','{"content": {"parts": [{"function_response": {"id": "adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a", "name": "process_payment", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-ebe3244c-4563-47eb-9cf6-6199c0f5f3b5", "user": "u-payment", "reply": "reply-ec1698bf-299f-4e96-8d5b-6f8fc25982b5"}}, "invocation_id": "e-079bddd7-1c67-4783-b581-d6284e776555", "author": "demo", "actions": {"skip_summarization": true, "state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"adk-d3479c0f-93fc-4a8b-ad6f-3eab4014b39a": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}}, "node_info": {"path": "demo@1"}, "id": "c13ff0fd-f829-4b59-b8ef-15c0f59f104a", "timestamp": 1794963064.1577487}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('demo','local','weather','{"adk_stream_title": "What is the weather in Tokyo?", "adk_stream_created": 1794963063.901861}','2026-11-18 00:51:03.909139','2026-11-18 00:51:04.120374');
INSERT INTO "sessions" VALUES('demo','local','payment','{"adk_stream_title": "Pay 50 dollars to Hanako.", "adk_stream_created": 1794963064.1436245}','2026-11-18 00:51:04.144770','2026-11-18 00:51:04.157749');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('demo','local','{}','2026-11-18 00:51:03');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
CREATE INDEX adk_stream_turn_owner ON adk_stream_turn (owner, running);
CREATE INDEX adk_stream_turn_lease ON adk_stream_turn (running, lease_until);
CREATE INDEX adk_stream_request_reply ON adk_stream_request (reply_id);
CREATE INDEX adk_stream_call_expiry ON adk_stream_call (state, expires_at);
CREATE INDEX adk_stream_call_owner ON adk_stream_call (owner, state);
CREATE INDEX adk_stream_call_chat ON adk_stream_call (chat_id, created_at);
CREATE INDEX adk_stream_call_undelivered ON adk_stream_call (state) WHERE delivered_in IS NULL;
CREATE INDEX adk_stream_chunk_age ON adk_stream_chunk (created_at);
COMMIT;
