/** Asks the simulator's control API; rejects with what it says when it refuses. */
export async function control(
  simulatorUrl: string,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<unknown> {
  const init = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const answer = await fetch(`${simulatorUrl}/control/${path}`, { method, ...init })
  if (!answer.ok) throw new Error(`The simulator refuses ${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}
