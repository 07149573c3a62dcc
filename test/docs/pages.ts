import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Snippet {
  /** What stands behind the fence: `sh`, `js`, `json` …; nothing for a drawing. */
  language: string
  code: string
  /** Of its fence. */
  line: number
  /** Why no test runs it, as the comment before it says: `<!-- not run: why -->`. */
  notRun: string | null
  /** A webhook's body, as the comment before it says: `<!-- webhook: message.received -->`. */
  webhook: string | null
}

export interface Page {
  /** From the root of the repository. */
  path: string
  text: string
  snippets: Snippet[]
}

/** Languages that the tests of the pages can run, or compare with what is real. */
const runLanguages = ['sh', 'js', 'json']

export const isRun = ({ language, notRun }: Snippet): boolean => runLanguages.includes(language) && notRun === null

/** Pages that people read to use or to run the service. */
export const pages = (): Page[] =>
  ['README.md', ...['docs', 'docs/operations'].flatMap(filesIn)].filter((path) => path.endsWith('.md')).map(readPage)

const filesIn = (folder: string) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`)

export function readPage(path: string): Page {
  const text = readFileSync(join(root, path), 'utf8')
  return { path, text, snippets: snippetsOf(text) }
}

const fence = /^( *)```(.*)$/
const note = /^<!-- (not run|webhook): (.+) -->$/

function snippetsOf(text: string): Snippet[] {
  const lines = text.split('\n')
  const snippets: Snippet[] = []
  for (let at = 0; at < lines.length; at++) {
    const [, indent = '', language] = fence.exec(lines[at] ?? '') ?? []
    if (language === undefined) continue
    const end = lines.indexOf(`${indent}\`\`\``, at + 1)
    if (end === -1) throw new Error(`the fence of line ${at + 1} has no end`)
    const code = lines.slice(at + 1, end).map((line) => line.slice(indent.length))
    const before = lines.slice(0, at).findLast((line) => line.trim() !== '')
    const [, kind, words = ''] = note.exec(before?.trim() ?? '') ?? []
    snippets.push({
      language,
      code: code.join('\n'),
      line: at + 1,
      notRun: kind === 'not run' ? words : null,
      webhook: kind === 'webhook' ? words : null,
    })
    at = end
  }
  return snippets
}

/** The anchors of a page's headings, as GitHub makes them. */
export const anchorsOf = (text: string): string[] =>
  text
    .replaceAll(/^```.*?^```$/gms, '')
    .split('\n')
    .filter((line) => /^#+ /.test(line))
    .map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    )

export const isThere = (path: string): boolean => existsSync(join(root, path))
