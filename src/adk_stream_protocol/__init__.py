"""Any Google ADK agent behind the Vercel AI SDK's `useChat`."""

__all__: list[str] = []
