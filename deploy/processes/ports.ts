import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'

// Below the range from which Linux (32,768 and up) and macOS (49,152 and up) take the ports of outgoing connections:
// one of those could sit on our port in the moment in which a killed server is started again.
const range = { from: 20_000, to: 32_768 }
/** Found free, but perhaps not yet taken by the program that it was found for. */
const handedOut = new Set<number>()

/** Ports with a purpose of their own. */
const kept = new Set<number>()

/** From now on no name is given this port. */
export const keepPort = (port: number) => void kept.add(port)

/** The port that this data folder used for that name before, if it is free; else another free one, which it remembers. */
export async function portFor(dataDir: string, name: string): Promise<number> {
  const remembered = readPorts(dataDir)[name]
  if (remembered !== undefined && !kept.has(remembered) && (await isFree(remembered))) return remembered
  const port = await freePort()
  writeFileSync(fileOf(dataDir), JSON.stringify({ ...readPorts(dataDir), [name]: port }))
  return port
}

/** One that nobody listens at, and that no outgoing connection takes meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(range.from, range.to)
    if (handedOut.has(port) || kept.has(port)) continue
    handedOut.add(port)
    if (await isFree(port)) return port
  }
}

const isFree = async (port: number) => (await refusalOf(port)) === undefined

/** Why no server could listen on this port on every address of this machine: `EADDRINUSE`, `EACCES`; undefined when one could. */
export const refusalOf = (port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message))
    probe.listen(port, () => probe.close(() => resolve(undefined)))
  })

const fileOf = (dataDir: string) => join(dataDir, 'ports.json')

function readPorts(dataDir: string): Record<string, number> {
  try {
    return z.record(z.string(), z.int()).parse(JSON.parse(readFileSync(fileOf(dataDir), 'utf8')))
  } catch {
    return {}
  }
}
