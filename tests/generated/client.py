"""A client of the server that knows nothing but what openapi-python-client made of it.

The package that it imports is made by the test that runs it, in a process of its own. It prints
what it saw.
"""

from __future__ import annotations

import json
import sys

from adk_stream_protocol_client import Client
from adk_stream_protocol_client.api.approvals import decide_approval, export_audit, list_approvals
from adk_stream_protocol_client.api.chat_ai_sdk import send_message
from adk_stream_protocol_client.api.chats import get_chat, list_chats
from adk_stream_protocol_client.models import (
    ApprovalShape,
    ApprovalsShape,
    AuditShape,
    ChatShape,
    ChatsShape,
    DecideApprovalBody,
    ErrorShape,
    ListApprovalsStatus,
    SendMessageBody,
    SendMessageBodyMessagesItem,
    SendMessageBodyMessagesItemPartsItem,
    SendMessageBodyMessagesItemRole,
    SendMessageSdk,
)


def message(text: str) -> SendMessageBody:
    part = SendMessageBodyMessagesItemPartsItem(type_="text")
    part["text"] = text
    item = SendMessageBodyMessagesItem(
        role=SendMessageBodyMessagesItemRole.USER, id=text, parts=[part]
    )
    return SendMessageBody(id="typed", messages=[item])


def main(url: str) -> dict[str, object]:
    # Errors of chat routes are a plain sentence unless JSON is asked for.
    client = Client(base_url=url, headers={"Accept": "application/json"})
    replied = send_message.sync(client=client, body=message("hi"), sdk=SendMessageSdk.AI7)
    chats = list_chats.sync(client=client)
    chat = get_chat.sync("typed", client=client)
    send_message.sync(client=client, body=message("pay 5"))
    pending = list_approvals.sync(client=client, status=ListApprovalsStatus.PENDING)
    assert isinstance(pending, ApprovalsShape)
    (approval,) = pending.approvals
    no = DecideApprovalBody(approved=False, reason="Not today.")
    decided = decide_approval.sync(approval.id, client=client, body=no)
    again = decide_approval.sync_detailed(
        approval.id, client=client, body=DecideApprovalBody(approved=True)
    )
    audit = export_audit.sync(client=client, arguments=True)
    nowhere = get_chat.sync("nowhere", client=client)
    empty = send_message.sync(client=client, body=SendMessageBody(messages=[]))
    assert isinstance(chats, ChatsShape)
    assert isinstance(chat, ChatShape)
    assert isinstance(decided, ApprovalShape)
    assert isinstance(again.parsed, ApprovalShape)
    assert isinstance(audit, AuditShape)
    assert isinstance(nowhere, ErrorShape)
    assert isinstance(empty, ErrorShape)
    assert approval.created_at.tzinfo is not None
    return {
        "replied": replied,
        "chats": [each.id for each in chats.chats],
        "roles": [message.role for message in chat.messages],
        "parts": [[part.type_ for part in message.parts] for message in chat.messages],
        "tool": approval.tool_name,
        "decided": decided.status,
        "conflict": again.parsed.status if again.status_code == 409 else None,
        "events": [line.event for line in audit.trail],
        "nowhere": nowhere.error.code,
        "empty": empty.error.code,
    }


if __name__ == "__main__":
    json.dump(main(sys.argv[1]), sys.stdout)
