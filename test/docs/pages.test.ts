import { dirname, join, normalize } from 'node:path'
import { eventType } from '@app/shared/contracts/webhooks.ts'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { readOptions } from '../bench/options.ts'
import { anchorsOf, isRun, isThere, pages, readPage } from './pages.ts'

const all = pages()

/** Links of Markdown, and files that are named as `docs/…` or `test/…`. */
const targetsOf = (text: string) => {
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return links.filter((target) => !/^https?:/.test(target))
}

test.each(all)('the links of $path lead somewhere', ({ path, text }) => {
  const broken = targetsOf(text).filter((target) => {
    const [file = '', anchor] = target.split('#')
    const to = file === '' ? path : normalize(join(dirname(path), file))
    if (!isThere(to)) return true
    return anchor !== undefined && !anchorsOf(readPage(to).text).includes(anchor)
  })
  expect(broken).toEqual([])
})

test.each(all)('the files that $path names are there', ({ text }) => {
  const named = [...text.matchAll(/`((?:docs|test|shared|services|deploy)\/[\w./-]+)`/g)].map(([, file = '']) => file)
  expect(named.filter((file) => !isThere(file))).toEqual([])
})

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readPage('package.json').text))

test.each(all)('the npm commands that $path names are there, and understand what they are told', ({ text }) => {
  for (const [, name = '', args = ''] of text.matchAll(/npm run ([a-z:]+)(?: -- ([^`#\n]+))?/g)) {
    expect(Object.keys(scripts)).toContain(name)
    if (name === 'bench' && args !== '') expect(() => readOptions(args.trim().split(' '))).not.toThrow()
  }
})

const { paths } = z
  .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
  .parse(JSON.parse(readPage('docs/openapi.json').text))
const nameless = (path: string) => path.replaceAll(/{[^}]+}/g, '{}')
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${nameless(path)}`),
)
/** Of the nats-server, and what the platform calls. */
const elsewhere = new Set(['GET /jsz', 'GET /healthz', 'POST /upstream/callbacks'])

test.each(all)('the operations that $path names are there', ({ text }) => {
  const named = [...text.matchAll(/`((?:GET|POST|PATCH|DELETE) \/[^\s`?…]*)/g)].map(([, name = '']) =>
    nameless(name.replace(' /v1/', ' /')),
  )
  expect(named.filter((name) => !operations.includes(name) && !elsewhere.has(name))).toEqual([])
})

test('every page is in the index', () => {
  const index = targetsOf(readPage('docs/README.md').text)
  const names = all.map(({ path }) => path.replace(/^docs\//, '')).filter((name) => !name.endsWith('README.md'))
  expect(names.filter((name) => !index.includes(name))).toEqual([])
})

test('what nobody can run is marked as not run, whatever its language', () => {
  const unmarked = all.flatMap(({ path, snippets }) =>
    snippets
      .filter((one) => one.language !== '' && one.notRun === null && !isRun(one))
      .map(({ line, language }) => `${path}:${line} ${language}`),
  )
  expect(unmarked).toEqual([])
})

test('what is not run says why, and is counted', () => {
  const skipped = all.flatMap(({ path, snippets }) =>
    snippets.filter(({ notRun }) => notRun !== null).map(({ language }) => `${path} ${language}`),
  )
  expect(skipped).toEqual([
    'README.md sh',
    'docs/deploying.md sh',
    'docs/deploying.md sh',
    'docs/deploying.md sql',
    'docs/deploying.md sh',
    'docs/deploying.md sh',
    'docs/deploying.md sh',
    'docs/deploying.md nginx',
    'docs/deploying.md haproxy',
    'docs/deploying.md sh',
    'docs/deploying.md dockerfile',
    'docs/onboarding.md sh',
    'docs/real-platform.md sh',
    'docs/real-platform.md sh',
    'docs/running.md sql',
    'docs/webhooks.md sh',
    'docs/webhooks.md js',
    'docs/webhooks.md python',
    'docs/webhooks.md go',
    'docs/webhooks.md ruby',
    'docs/webhooks.md php',
    'docs/webhooks.md java',
    'docs/operations/backup-and-restore.md sql',
    'docs/operations/backup-and-restore.md sh',
    'docs/operations/backup-and-restore.md sh',
    'docs/operations/upgrading.md sh',
    'docs/operations/upgrading.md sh',
    'docs/operations/upgrading.md sh',
    'docs/operations/upgrading.md sh',
    'docs/operations/upgrading.md sh',
  ])
})

test('the files that CONTRIBUTING.md names are there', () => {
  const { text } = readPage('CONTRIBUTING.md')
  const named = [...text.matchAll(/`((?:shared|services|deploy|docs|test)\/[\w./-]+\.\w+)`/g)].map(
    ([, path = '']) => path,
  )
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((path) => !isThere(path))).toEqual([])
})

test('the list of events is that of the interface', () => {
  const { text } = readPage('docs/receiving.md')
  const [, list = ''] = text.split('## Every event')
  expect([...list.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, type]) => type)).toEqual(eventType.options)
})
