import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What no log may hold, whoever it is of: keys, signing secrets, one-time links, the numbers of people that tests make. */
const secrets: Record<string, RegExp> = {
  'an API key': /svc_live_[\w-]{24}/,
  'a signing secret': /whsec_[\w-]{20}/,
  'a setup link': /\/setup\/[\w-]{43}/,
  'a bearer token': /bearer +[\w-]{8}/i,
  // Not within an id, which may have any digits.
  'a phone number': /(?<![\da-f.])\+?1555\d{7}(?![\da-f])/,
  'a password in a URL': /\w+:\/\/\w+:[^@*\s]{8,}@/,
}

/** What the logs of a stack hold and must not: texts that a test sent, and whatever looks like a secret. */
export function secretsIn(dataDir: string, texts: Record<string, string> = {}): string[] {
  const folder = join(dataDir, 'logs')
  // The platform's simulator stands for somebody else.
  const files = readdirSync(folder).filter((name) => !name.startsWith('simulator'))
  return files.flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .flatMap((line) => [
        ...Object.entries(texts).flatMap(([what, text]) => (line.includes(text) ? [`${name}: ${what}: ${line}`] : [])),
        ...Object.entries(secrets).flatMap(([what, shape]) => (shape.test(line) ? [`${name}: ${what}: ${line}`] : [])),
      ]),
  )
}

/** Whether a text stands in any log: what was written before it is there, too. */
export const isLogged = (dataDir: string, text: string): boolean =>
  readdirSync(join(dataDir, 'logs')).some((name) => readFileSync(join(dataDir, 'logs', name), 'utf8').includes(text))
