"""jobs.py PEER CONCURRENCY SECONDS: claims and completes jobs in loops without a pause, prints {"done", "seconds"}."""

import asyncio
import json
import sys
import time

JOBS = 6_000


async def loops(step, concurrency, seconds):
    """So many loops at once until the time is over."""
    begin, done = time.perf_counter(), 0

    async def loop():
        nonlocal done
        while time.perf_counter() - begin < seconds:
            if not await step():
                raise SystemExit("no job left: nothing was measured")
            done += 1

    await asyncio.gather(*(loop() for _ in range(concurrency)))
    return {"done": done, "seconds": time.perf_counter() - begin}


async def procrastinate(concurrency, seconds):
    from procrastinate import App, PsycopgConnector
    from procrastinate.jobs import Status

    app = App(connector=PsycopgConnector(min_size=concurrency, max_size=concurrency))

    @app.task(name="measured")
    def measured():
        pass

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await measured.batch_defer_async(*({} for _ in range(JOBS)))
        worker = await app.job_manager.register_worker()

        async def step():
            job = await app.job_manager.fetch_job(queues=None, worker_id=worker)
            if job:
                await app.job_manager.finish_job(job, status=Status.SUCCEEDED, delete_job=False)
            return job

        return await loops(step, concurrency, seconds)


async def kslate(concurrency, seconds):
    from psycopg_pool import AsyncConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0}
    async with AsyncConnectionPool(min_size=concurrency, max_size=concurrency, kwargs=settings, open=False) as pool:

        async def step():
            async with pool.connection() as connection:
                answer = await connection.execute("select record, claim_id from kslate_claim_next('bench', 'task', 60)")
                claim = await answer.fetchone()
                if claim:
                    await connection.execute("select * from kslate_complete(%s, 'task', %s)", claim)
                return claim

        return await loops(step, concurrency, seconds)


peer, concurrency, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
print(json.dumps(asyncio.run({"procrastinate": procrastinate, "kslate": kslate}[peer](concurrency, seconds))))
