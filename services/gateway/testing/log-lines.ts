import { vi } from 'vitest'
import type { App } from '../app.ts'
import { mostLines } from '../exchange/sparingly.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const

interface Line {
  level: string
  msg: string | undefined
}

/** What a gateway writes into its log from now on, at any level, until mocks are restored. */
export function logLines({ log }: App): Line[] {
  const lines: Line[] = []
  vi.spyOn(log, 'isLevelEnabled').mockReturnValue(true)
  for (const level of levels)
    vi.spyOn(log, level).mockImplementation(
      (line: unknown, msg?: string) => void lines.push({ level, msg, ...Object(line) }),
    )
  return lines
}

export const countWarnings = (lines: Line[]): number => lines.filter(({ level }) => level === 'warn').length

/** Answers how many lines may have been written sparingly from now until it is asked. */
export function mostLinesSince(): () => number {
  const second = () => Math.floor(performance.now() / 1_000)
  const since = second()
  return () => (second() - since + 1) * mostLines
}
