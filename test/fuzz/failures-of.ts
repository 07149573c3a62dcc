import { inParallel } from '../bench/load/in-parallel.ts'
import { type Request, shown } from './request.ts'

/** Under way at a time. */
const parallel = 8

/** The requests of which `prove` throws, each with what it says. */
export async function failuresOf<T>(
  items: readonly T[],
  requestOf: (item: T) => Request,
  prove: (request: Request, n: number) => Promise<unknown>,
): Promise<string[]> {
  const failures: string[] = []
  await inParallel(parallel, items.entries(), async ([n, item]) => {
    const request = requestOf(item)
    await prove(request, n).catch((err: unknown) =>
      failures.push(`#${n} ${shown(request)}\n  ${err instanceof Error ? err.message : String(err)}`),
    )
  })
  return failures
}
