import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'
import { findWrk } from './find-wrk.ts'

const script = fileURLToPath(new URL('requests.lua', import.meta.url))
const separator = '\0'
/** In a request: ten digits that no other request of this run of the bench has. */
export const uniqueDigits = '\u0001'

/** Requests in a file, for wrk to send in turn. */
export interface Requests {
  origin: string
  file: string
  /** The first of them, whole, for a look at what is answered to it. */
  sample: RequestToSend
}

export interface RequestToSend {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: string
}

/** What a time of load came to. */
export interface Load {
  requests: number
  perSecond: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
}

export function writeRequests(folder: string, name: string, origin: string, requests: RequestToSend[]): Requests {
  const [sample] = requests
  if (!sample) throw new Error(`${name}: no requests to send`)
  const file = join(folder, `${name}.requests`)
  writeFileSync(file, requests.map((request) => textOf(origin, request)).join(separator))
  return { origin, file, sample }
}

function textOf(origin: string, { method, path, headers = {}, body }: RequestToSend) {
  const length = body === undefined ? [] : [`content-length: ${lengthOf(body)}`]
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`${method} ${path} HTTP/1.1`, `host: ${new URL(origin).host}`, ...lines, ...length, '', body ?? ''].join(
    '\r\n',
  )
}

const lengthOf = (body: string) => Buffer.byteLength(withDigits(body, '0'))

const withDigits = (text: string, digit: string) => text.replaceAll(uniqueDigits, digit.repeat(10))

const report = z.object({
  requests: z.number(),
  micros: z.number(),
  p50Micros: z.number(),
  p95Micros: z.number(),
  p99Micros: z.number(),
  refused: z.number(),
  broken: z.number(),
})

/** Requests sent so far: the digits go on from here. */
let sent = 0

/** Keeps so many connections busy for so long. Rejects when any answer is not a success, be it 429 or 503. */
export async function load({ origin, file, sample }: Requests, connections: number, seconds: number): Promise<Load> {
  const wrk = findWrk()
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script]
  const { stdout } = await promisify(execFile)(wrk, [...options, origin, '--', file, String(sent)])
  const line = stdout.trimEnd().split('\n').at(-1) ?? ''
  const { requests, micros, refused, broken, ...latency } = report.parse(JSON.parse(line))
  sent += requests + connections
  if (refused + broken > 0 || requests === 0) {
    const counts = `${requests} answers, of them ${refused} no success, and ${broken} connections broken`
    throw new Error(`${sample.method} ${sample.path}: ${counts}; ${await look(origin, sample)}`)
  }
  return {
    requests,
    perSecond: requests / (micros / 1e6),
    p50Ms: latency.p50Micros / 1000,
    p95Ms: latency.p95Micros / 1000,
    p99Ms: latency.p99Micros / 1000,
  }
}

/** What one such request is answered now, since wrk keeps no answers. */
async function look(origin: string, { method, path, headers = {}, body }: RequestToSend) {
  const all = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, withDigits(value, '9')]))
  try {
    const init = body === undefined ? {} : { body: withDigits(body, '9') }
    const answer = await fetch(origin + path, { method, headers: all, ...init })
    return `the same alone is answered ${answer.status} ${(await answer.text()).slice(0, 300)}`
  } catch (err) {
    return `the same alone fails: ${err instanceof Error ? err.message : String(err)}`
  }
}
