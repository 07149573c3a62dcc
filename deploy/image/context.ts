import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** What `.dockerignore` leaves of a folder: the paths of all files, the last pattern that fits one or a parent deciding. */
export function contextIn(folder: string, dockerignore: string): string[] {
  const rules = dockerignore
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ isKept: line.startsWith('!'), fits: fitsOf(line.replace(/^!/, '')) }))
  const isIn = (path: string) => {
    const parents = path.split('/').map((_, n, words) => words.slice(0, n + 1).join('/'))
    const rule = rules.findLast(({ fits }) => parents.some((parent) => fits.test(parent)))
    return rule === undefined || rule.isKept
  }
  return filesIn(folder).filter(isIn)
}

/** `*` is any name or part of one, those that begin with a dot too; `**` any number of folders. */
function fitsOf(pattern: string) {
  const parts = pattern.split(/(\*\*\/|\*)/).map((part) => {
    if (part === '**/') return '(?:.*/)?'
    return part === '*' ? '[^/]*' : RegExp.escape(part)
  })
  return new RegExp(`^${parts.join('')}$`)
}

function filesIn(folder: string, below = ''): string[] {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === '.git' ? [] : filesIn(folder, path)
    return entry.isFile() ? [path] : []
  })
}
