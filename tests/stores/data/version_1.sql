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
	PRIMARY KEY (approval_id)
);
INSERT INTO "adk_stream_call" VALUES('adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c','adk-c48cf8cf-d6a2-4114-a01e-9528c7327228','local','payment','e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c','process_payment','{"amount":50,"recipient":"Hanako","currency":"USD"}','cd0ca38a762dece9e3372d309ac84f80f19c481dcb270b4194e4203908faaf1b',1.7947997311370193958e+09,1.7948033311370193958e+09,'adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c','demo@','tool',1,'pending','Send money','Nothing is sent unless you approve.','high',NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
CREATE TABLE adk_stream_chunk (
	reply_id VARCHAR(64) NOT NULL, 
	seq INTEGER NOT NULL, 
	data TEXT, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (reply_id, seq)
);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',0,'{"type":"moment:own"}',1.7947997308019981384e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',1,'{"type":"start","messageId":"msg-d2454d11-4b33-48a4-97de-5f59234a5c34"}',1.7947997308019981384e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',2,'{"type":"start-step"}',1.79479973101998114583e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',3,'{"type":"tool-input-start","toolCallId":"adk-d615de31-2e85-440c-a612-b750c965bae4","toolName":"get_weather"}',1.79479973101998114583e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',4,'{"type":"tool-input-delta","toolCallId":"adk-d615de31-2e85-440c-a612-b750c965bae4","inputTextDelta":"{\"city\":\"Paris\"}"}',1.79479973101998114583e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',5,'{"type":"tool-input-available","toolCallId":"adk-d615de31-2e85-440c-a612-b750c965bae4","toolName":"get_weather","input":{"city":"Paris"}}',1.79479973101998114583e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',6,'{"type":"tool-output-available","toolCallId":"adk-d615de31-2e85-440c-a612-b750c965bae4","output":{"city":"Paris","temperature_c":14,"condition":"light rain"}}',1.79479973103301668167e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',7,'{"type":"finish-step"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',8,'{"type":"start-step"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',9,'{"type":"text-start","id":"1"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',10,'{"type":"text-delta","id":"1","delta":"The"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',11,'{"type":"text-delta","id":"1","delta":" weather"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',12,'{"type":"text-delta","id":"1","delta":" in"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',13,'{"type":"text-delta","id":"1","delta":" Paris:"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',14,'{"type":"text-delta","id":"1","delta":" light"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',15,'{"type":"text-delta","id":"1","delta":" rain,"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',16,'{"type":"text-delta","id":"1","delta":" 14"}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',17,'{"type":"text-delta","id":"1","delta":" °C."}',1.79479973104898929596e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',18,'{"type":"text-end","id":"1"}',1.79479973105200672151e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',19,'{"type":"finish-step"}',1.79479973105200672151e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',20,'{"type":"finish","finishReason":"stop","messageMetadata":{"usage":{"inputTokens":614,"outputTokens":22,"totalTokens":636}}}',1.79479973105200672151e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee',21,NULL,1.79479973105598974232e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',0,'{"type":"moment:own"}',1.79479973110398793216e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',1,'{"type":"start","messageId":"msg-63da470e-60dc-46f0-b6af-476dd3cd513c"}',1.79479973110499382016e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',2,'{"type":"start-step"}',1.79479973113199019435e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',3,'{"type":"tool-input-start","toolCallId":"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228","toolName":"process_payment"}',1.79479973113199019435e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',4,'{"type":"tool-input-delta","toolCallId":"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228","inputTextDelta":"{\"amount\":50,\"recipient\":\"Hanako\",\"currency\":\"USD\"}"}',1.79479973113199019435e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',5,'{"type":"tool-input-available","toolCallId":"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228","toolName":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"}}',1.79479973113199019435e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',6,'{"type":"moment:held","approval_id":"adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c","call_id":"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228","tool_name":"process_payment","input":{"amount":50,"recipient":"Hanako","currency":"USD"},"hint":"Nothing is sent unless you approve.","payload":null,"approval":true,"kind":"tool","request_id":"adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c","card":{"toolCallId":"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228","toolName":"process_payment","status":"pending","title":"Send money","hint":"Nothing is sent unless you approve.","risk":"high","createdAt":"2026-11-16T03:28:51.137Z","expiresAt":"2026-11-16T04:28:51.137Z"}}',1.7947997311430141926e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',7,'{"type":"finish-step"}',1.79479973115001463892e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',8,'{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":288,"outputTokens":24,"totalTokens":312}}}',1.79479973115001463892e+09);
INSERT INTO "adk_stream_chunk" VALUES('reply-8740c396-781d-478d-a793-63d2d41b98c6',9,NULL,1.79479973115299201009e+09);
CREATE TABLE adk_stream_schema (
	version INTEGER NOT NULL
);
INSERT INTO "adk_stream_schema" VALUES(1);
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
	PRIMARY KEY (chat_id)
);
INSERT INTO "adk_stream_turn" VALUES('weather','local','reply-8a969545-312c-4a91-9a72-0d67b9ebc6ee','say:u1:c0d70fb3bb809d3054065301083c97e8db27c47fdd1babff950c25ff94d09e57',0,0,'7a2339721dfc4053a6130ae70e8ebbe7',1,1.79479976076800107958e+09);
INSERT INTO "adk_stream_turn" VALUES('payment','local','reply-8740c396-781d-478d-a793-63d2d41b98c6','say:u1:c6023d51160f195aeaa49854f1a7b1731b9d25acfeeb880a9589c4755492b918',0,0,'7a2339721dfc4053a6130ae70e8ebbe7',1,1.7947997610800089836e+09);
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('demo','{}','2026-11-16 03:28:50');
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
INSERT INTO "events" VALUES('be260baa-960e-422e-83a2-a70d16ace439','demo','local','weather','','2026-11-16 03:28:50.788342','{"invocation_id": "", "author": "user", "actions": {"state_delta": {"adk_stream_title": "What is the weather in Paris?", "adk_stream_created": 1794799730.771984}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "be260baa-960e-422e-83a2-a70d16ace439", "timestamp": 1794799730.788342}');
INSERT INTO "events" VALUES('ff5c959b-0198-4c0e-8c01-253455f22598','demo','local','weather','e-edf6aba7-bad0-4622-bb20-fb27afac5369','2026-11-16 03:28:50.938539','{"content": {"parts": [{"text": "What is the weather in Paris?"}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-d2454d11-4b33-48a4-97de-5f59234a5c34", "user": "u1"}}, "invocation_id": "e-edf6aba7-bad0-4622-bb20-fb27afac5369", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "ff5c959b-0198-4c0e-8c01-253455f22598", "timestamp": 1794799730.938539}');
INSERT INTO "events" VALUES('44903fe0-7992-473a-aa57-45a0a76ae631','demo','local','weather','e-edf6aba7-bad0-4622-bb20-fb27afac5369','2026-11-16 03:28:51.006261','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-d615de31-2e85-440c-a612-b750c965bae4", "args": {"city": "Paris"}, "name": "get_weather"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-d2454d11-4b33-48a4-97de-5f59234a5c34", "user": "u1"}}, "usage_metadata": {"candidates_token_count": 10, "prompt_token_count": 290, "total_token_count": 300}, "invocation_id": "e-edf6aba7-bad0-4622-bb20-fb27afac5369", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "44903fe0-7992-473a-aa57-45a0a76ae631", "timestamp": 1794799731.0062606}');
INSERT INTO "events" VALUES('82666008-0e51-4c44-9f4d-035703409a3d','demo','local','weather','e-edf6aba7-bad0-4622-bb20-fb27afac5369','2026-11-16 03:28:51.019446','{"content": {"parts": [{"function_response": {"id": "adk-d615de31-2e85-440c-a612-b750c965bae4", "name": "get_weather", "response": {"city": "Paris", "temperature_c": 14, "condition": "light rain"}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-d2454d11-4b33-48a4-97de-5f59234a5c34", "user": "u1"}}, "invocation_id": "e-edf6aba7-bad0-4622-bb20-fb27afac5369", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "82666008-0e51-4c44-9f4d-035703409a3d", "timestamp": 1794799731.0194461}');
INSERT INTO "events" VALUES('1fac95da-cee7-4ee6-8790-2a063f3d091b','demo','local','weather','e-edf6aba7-bad0-4622-bb20-fb27afac5369','2026-11-16 03:28:51.040799','{"model_version": "offline", "content": {"parts": [{"text": "The weather in Paris: light rain, 14 \u00b0C."}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-d2454d11-4b33-48a4-97de-5f59234a5c34", "user": "u1"}}, "usage_metadata": {"candidates_token_count": 12, "prompt_token_count": 324, "total_token_count": 336}, "invocation_id": "e-edf6aba7-bad0-4622-bb20-fb27afac5369", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "id": "1fac95da-cee7-4ee6-8790-2a063f3d091b", "timestamp": 1794799731.0407987}');
INSERT INTO "events" VALUES('8cff8221-59bf-4b3f-bf95-bc55c4a1b55c','demo','local','payment','','2026-11-16 03:28:51.096106','{"invocation_id": "", "author": "user", "actions": {"state_delta": {"adk_stream_title": "Send $50 to Hanako", "adk_stream_created": 1794799731.0889812}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "8cff8221-59bf-4b3f-bf95-bc55c4a1b55c", "timestamp": 1794799731.096106}');
INSERT INTO "events" VALUES('1897514b-7615-406c-bd71-4e65ee2c212f','demo','local','payment','e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c','2026-11-16 03:28:51.110261','{"content": {"parts": [{"text": "Send $50 to Hanako"}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-63da470e-60dc-46f0-b6af-476dd3cd513c", "user": "u1"}}, "invocation_id": "e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "1897514b-7615-406c-bd71-4e65ee2c212f", "timestamp": 1794799731.1102612}');
INSERT INTO "events" VALUES('ef4d7dbe-6746-47eb-9704-87d37240d093','demo','local','payment','e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c','2026-11-16 03:28:51.119276','{"model_version": "offline", "content": {"parts": [{"function_call": {"id": "adk-c48cf8cf-d6a2-4114-a01e-9528c7327228", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}}], "role": "model"}, "partial": false, "finish_reason": "STOP", "custom_metadata": {"adk_stream": {"message": "msg-63da470e-60dc-46f0-b6af-476dd3cd513c", "user": "u1"}}, "usage_metadata": {"candidates_token_count": 24, "prompt_token_count": 288, "total_token_count": 312}, "invocation_id": "e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": [], "id": "ef4d7dbe-6746-47eb-9704-87d37240d093", "timestamp": 1794799731.1192756}');
INSERT INTO "events" VALUES('785d1679-b89e-41f5-b756-78a414f8d953','demo','local','payment','e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c','2026-11-16 03:28:51.130451','{"content": {"parts": [{"function_call": {"id": "adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c", "args": {"originalFunctionCall": {"id": "adk-c48cf8cf-d6a2-4114-a01e-9528c7327228", "args": {"amount": 50, "recipient": "Hanako", "currency": "USD"}, "name": "process_payment"}, "toolConfirmation": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}, "name": "adk_request_confirmation"}}], "role": "model"}, "custom_metadata": {"adk_stream": {"message": "msg-63da470e-60dc-46f0-b6af-476dd3cd513c", "user": "u1"}}, "invocation_id": "e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c", "author": "demo", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "demo@1"}, "long_running_tool_ids": ["adk-68e79bd2-ed8a-434f-a8c3-62ec7dc1567c"], "id": "785d1679-b89e-41f5-b756-78a414f8d953", "timestamp": 1794799731.1304507}');
INSERT INTO "events" VALUES('e54bf285-a359-4b39-986c-dcfbb39755e0','demo','local','payment','e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c','2026-11-16 03:28:51.130225','{"content": {"parts": [{"function_response": {"id": "adk-c48cf8cf-d6a2-4114-a01e-9528c7327228", "name": "process_payment", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}], "role": "user"}, "custom_metadata": {"adk_stream": {"message": "msg-63da470e-60dc-46f0-b6af-476dd3cd513c", "user": "u1"}}, "invocation_id": "e-8ed0c444-65b3-4da5-b5e9-209b6e244c3c", "author": "demo", "actions": {"skip_summarization": true, "state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"adk-c48cf8cf-d6a2-4114-a01e-9528c7327228": {"hint": "Please approve or reject the tool call process_payment() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}}, "node_info": {"path": "demo@1"}, "id": "e54bf285-a359-4b39-986c-dcfbb39755e0", "timestamp": 1794799731.1302252}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('demo','local','weather','{"adk_stream_title": "What is the weather in Paris?", "adk_stream_created": 1794799730.771984}','2026-11-16 03:28:50.785419','2026-11-16 03:28:51.040799');
INSERT INTO "sessions" VALUES('demo','local','payment','{"adk_stream_title": "Send $50 to Hanako", "adk_stream_created": 1794799731.0889812}','2026-11-16 03:28:51.094164','2026-11-16 03:28:51.130225');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('demo','local','{}','2026-11-16 03:28:50');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
CREATE INDEX adk_stream_turn_owner ON adk_stream_turn (owner, running);
CREATE INDEX adk_stream_call_owner ON adk_stream_call (owner, state);
CREATE INDEX adk_stream_call_expiry ON adk_stream_call (state, expires_at);
CREATE INDEX adk_stream_call_chat ON adk_stream_call (chat_id, created_at);
CREATE INDEX adk_stream_chunk_age ON adk_stream_chunk (created_at);
COMMIT;
