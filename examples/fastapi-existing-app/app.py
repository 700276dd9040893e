"""An app with its own pages, users and routes, and an agent added to it."""

import secrets

from fastapi import Depends, FastAPI, Form, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.requests import HTTPConnection

from adk_stream_protocol import create_router, page_routes
from adk_stream_protocol.demo.agent import PaymentBook, build_agent

# What the app had before: users that it knows by a cookie, and what they may see.

app = FastAPI(title="Payments")
sessions: dict[str, str] = {}  # Yours: a table, a signed cookie, a token to verify.
book = PaymentBook()

FORM = """<!doctype html>
<title>Payments</title>
<form method="post" action="login">
  <input name="name" placeholder="Name"><button>Log in</button>
</form>
"""


def identify(connection: HTTPConnection) -> str | None:
    """Return who calls, or None for a stranger."""
    return sessions.get(connection.cookies.get("session", ""))


def user(connection: HTTPConnection) -> str:
    """Return who calls; a stranger is refused."""
    name = identify(connection)
    if name is None:
        raise HTTPException(401, "Log in first.")
    return name


@app.get("/")
async def home() -> HTMLResponse:
    """Show who wants to log in a form."""
    return HTMLResponse(FORM)


@app.post("/login")
async def log_in(name: str = Form(min_length=1, max_length=40)) -> RedirectResponse:
    """Believe anyone: this is an example."""
    session = secrets.token_urlsafe()
    sessions[session] = name
    response = RedirectResponse("/agent/", status_code=303)
    response.set_cookie("session", session, httponly=True, samesite="lax")
    return response


@app.get("/payments", dependencies=[Depends(user)])
async def payments() -> list[dict[str, object]]:
    """List what was paid."""
    return [dict(payment) for payment in book.payments]


# What is new: an agent, its chat routes, and the page to talk to it. The demo's agent needs no key;
# yours is an LlmAgent with tools of your own.

agent = build_agent(payments=book)
app.include_router(create_router(agent, identify=identify), prefix="/agent")
app.include_router(page_routes(), prefix="/agent", dependencies=[Depends(user)])
