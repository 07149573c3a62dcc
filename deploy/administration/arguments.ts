import { readFileSync } from 'node:fs'
import type { Rpc } from '@app/shared/api/contract.ts'
import { parseOnce } from '../command-line.ts'
import { type Command, commands, type Option } from './commands.ts'
import { explainUsages } from './explain.ts'

export interface AdminCall {
  contract: Command['contract']
  others: Rpc[]
  body: Record<string, unknown>
}

/** The command line, as a question to a service. Throws a sentence about what is unknown or missing. */
export function readArguments(args: string[], readInput = () => readFileSync(0, 'utf8')): AdminCall {
  const [noun = '', verb = '', ...rest] = args
  const words = `${noun} ${verb}`
  const command = commands[words]
  if (otherUsages.includes(words)) throw new Error(`Nothing belongs after "${words}".`)
  if (!command) throw new Error(`Unknown command "${words.trim()}". ${knownOf(noun)}`)
  const usage = `Usage: ${usageOf(words, command)}`
  const options = Object.fromEntries(Object.keys(command.options).map((name) => [name, { type: 'string' as const }]))
  const { values, positionals } = parseOnce({ args: rest, options, allowPositionals: true }, ` ${usage}`)
  const missing = Object.entries(command.options).filter(([name, { required }]) => required && !values[name])
  if (missing.length > 0) throw new Error(`${missing.map(([name]) => `--${name}`).join(', ')} missing. ${usage}`)
  const [operand, ...excess] = positionals
  if ((command.operand === undefined) !== (operand === undefined) || excess.length > 0) {
    throw new Error(
      `${command.operand === undefined ? 'Nothing' : 'Exactly one ID'} belongs after "${words}". ${usage}`,
    )
  }

  const body: Record<string, unknown> = {}
  if (command.operand !== undefined) body[command.operand] = operand
  for (const [name, option] of Object.entries(command.options)) {
    const value = values[name]
    if (value !== undefined) put(body, option.field.split('.'), valueOf(name, option, value, readInput))
  }
  return { contract: command.contract, others: command.others ?? [], body }
}

function valueOf(name: string, { kind = 'text' }: Option, text: string, readInput: () => string) {
  const refuse = (what: string) => new Error(`--${name} must be ${what}, and is "${text}".`)
  switch (kind) {
    case 'text':
      return text
    case 'secret':
      return text === '-' ? readInput().trim() : text
    case 'list':
      if (text !== '' && text.split(',').includes('')) throw refuse('names with a comma between two of them')
      return text.split(',').filter(Boolean)
    case 'count':
      if (text === 'none') return null
      if (!/^\d+$/.test(text)) throw refuse('a whole number or "none"')
      return Number(text)
    case 'number':
      if (!/^\d+$/.test(text)) throw refuse('a whole number')
      return Number(text)
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw refuse('"true" or "false"')
      return text === 'true'
  }
}

function put(target: Record<string, unknown>, [field = '', ...inner]: string[], value: unknown) {
  if (inner.length === 0) target[field] = value
  else {
    const part = (target[field] ??= {}) as Record<string, unknown>
    put(part, inner, value)
  }
}

/** Those that are more than one question. */
const otherUsages = [...explainUsages, 'secrets count', 'secrets reseal']

const usages = () => [...Object.entries(commands).map(([words, command]) => usageOf(words, command)), ...otherUsages]

/** What a person who asks for help is shown: all commands, or those of the words that stand before it. */
export function helpFor(args: string[]): string | null {
  const asked = (args[0] === 'help' ? args.slice(1) : args).filter((word) => !helpOptions.has(word))
  if (asked.length === args.length && args.length > 0) return null
  const about = usages().filter((usage) => `${usage} `.startsWith(asked.slice(0, 2).join(' ')))
  const shown = about.length > 0 ? about : usages()
  return `Usage: npm run admin -- COMMAND\n\n${shown.map(wrapped).join('\n')}\n\n${moreHelp}`
}

/** Options that may be left out begin a new line, where one would be too long. */
const wrapped = (usage: string) => `  ${usage.replaceAll(/(.{72,}?) (?=\[--)/g, '$1\n      ')}`

const helpOptions = new Set(['--help', '-h'])

const moreHelp = 'Each answers with one JSON object; what the options mean: docs/running.md#administration.'

/** The commands of a noun, or the way to all of them. */
function knownOf(noun: string) {
  const own = usages().filter((usage) => usage.split(' ')[0] === noun)
  return own.length > 0 ? `Known are: ${own.join('; ')}` : '`npm run admin -- help` lists all.'
}

function usageOf(words: string, { operand, options }: Command) {
  const parts = Object.entries(options).map(([name, { required }]) => (required ? `--${name} …` : `[--${name} …]`))
  return [words, ...(operand === undefined ? [] : ['ID']), ...parts].join(' ')
}
