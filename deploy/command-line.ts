import { parseArgs, type ParseArgsConfig } from 'node:util'
import { sentenceOf } from './command.ts'

/**
 * The words of a command line. Throws a sentence about an option that is unknown, lacks its value, or is given twice: of two
 * values the last would count, and the first be forgotten without a word. `usage` stands behind the sentence as it is.
 */
export function parseOnce<T extends ParseArgsConfig>(config: T, usage: string): ReturnType<typeof parseArgs<T>> {
  try {
    refuseRepeated(config)
    return parseArgs(config)
  } catch (err) {
    const [what = ''] = sentenceOf(err).split('. ')
    throw new Error(`${what.replaceAll('\n', ' ').replace(/\.$/, '')}.${usage}`, { cause: err })
  }
}

function refuseRepeated(config: ParseArgsConfig) {
  const { tokens } = parseArgs({ ...config, tokens: true })
  const names = tokens.flatMap((token) => (token.kind === 'option' ? token.name : []))
  const twice = names.find((name, n) => names.indexOf(name) !== n && takesOne(config, name))
  if (twice !== undefined) throw new Error(`Option '--${twice}' is given more than once`)
}

const takesOne = ({ options }: ParseArgsConfig, name: string) => {
  const option = options?.[name]
  return option?.type === 'string' && !option.multiple
}

/** For a program that is told everything by its environment. Throws when somebody told it more: `--dry-run` would do the work. */
export function refuseWords(words: string[]): void {
  if (words.length > 0) throw new Error(`"${words.join(' ')}" means nothing here: the settings are in the environment.`)
}
