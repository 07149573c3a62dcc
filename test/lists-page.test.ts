import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { contractModules } from '@app/gateway/contracts.ts'
import { isRpc } from '@app/shared/api/contract.ts'
import { expect, test } from 'vitest'

const page = readFileSync(join(import.meta.dirname, '../docs/lists.md'), 'utf8')

/** What is no filter. */
const paging = new Set(['limit', 'cursor'])

test('the page names the filters of every list', () => {
  const lists = Object.values(contractModules)
    .flatMap((module): unknown[] => Object.values(module))
    .filter(isRpc)
    .flatMap(({ list, http, query }) =>
      list && http ? [[http.path, Object.keys(query.shape).filter((name) => !paging.has(name))] as const] : [],
    )
  const shown = page.split('\n').flatMap((line) => {
    const [, path, filters = ''] = /^\| `(\/[^`]+)` \| (.+) \|$/.exec(line) ?? []
    return path === undefined ? [] : [[path, namesIn(filters)] as const]
  })
  expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(lists))
})

/** Without what stands in parentheses, which are values. */
const namesIn = (filters: string) =>
  [...filters.replaceAll(/\(.*?\)/g, '').matchAll(/`(\w+)`/g)].map(([, name]) => name)
