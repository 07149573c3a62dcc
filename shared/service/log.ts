import { type Logger, pino } from 'pino'
import { type LogLines, openLogLines } from './log-lines.ts'

/**
 * A logger that writes only what is asked for: one wide line per request, rpc, event or attempt. Errors are written by
 * name, message, code and stack alone, since the fields that libraries hang on them hold queries, bodies and secrets.
 */
export const createLog = (name: string, level: string): Logger =>
  pino({ level, base: { name, pid: process.pid }, serializers: { err: errorForLog } }, standardOutput(name))

let lines: LogLines | undefined

/** All loggers of a process share it, for it has one end. */
function standardOutput(name: string): LogLines {
  if (lines) return lines
  const lost = { level: pino.levels.values['warn'], name, pid: process.pid }
  const tellLost = (count: number) =>
    `${JSON.stringify({ ...lost, time: Date.now(), count, msg: 'lines of the log were lost' })}\n`
  lines = openLogLines(process.stdout.fd, { tellLost })
  process.once('exit', lines.end)
  return lines
}

/** A duration as lines have it: in tenths of a millisecond. */
export const rounded = (durationMs: number): number => Math.round(durationMs * 10) / 10

interface LoggedError {
  type: string
  message: string
  code?: string
  stack?: string | undefined
  cause?: LoggedError
}

function errorForLog(err: unknown): LoggedError {
  if (!(err instanceof Error)) return { type: typeof err, message: String(err) }
  return {
    type: err.name,
    message: err.message,
    ...('code' in err && { code: String(err.code) }),
    stack: err.stack,
    ...(err.cause !== undefined && { cause: errorForLog(err.cause) }),
  }
}
