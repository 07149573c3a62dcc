import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository, type ServiceName, serviceNames } from '../stack/options.ts'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** Every file of the services and of what they share. */
export const sources: string[] = globSync('{shared,services}/**/*.ts', {
  cwd: repository,
  exclude: ['**/node_modules'],
})
  .filter((file) => !file.includes('.test.'))
  .map(read)

/** The block of a shape of settings: the names in it, and the shapes that it takes in. */
function settingsIn(block: string): string[] {
  const own = [...block.matchAll(/^[{ ]*([A-Z][A-Z0-9_]+): *(?:z\b|[a-z]\w*)/gm)].map(([, name = '']) => name)
  const others = [...block.matchAll(/\.\.\.(\w+Settings)/g)].map(([, name = '']) => name)
  return [...own, ...others.flatMap((name) => settingsIn(shapeOf(name)))]
}

function shapeOf(name: string): string {
  for (const text of sources) {
    const shape = new RegExp(`^(?:export )?const ${name} = \\{$(.*?)^\\}$`, 'ms').exec(text)?.[1]
    if (shape !== undefined) return shape
  }
  throw new Error(`no shape ${name}`)
}

/** The environment that a service reads, as its code declares it. */
export function settingsOf(service: ServiceName): string[] {
  const own = /readEnv\(\s*\{(.*?)\},?\s*[\w)]/s.exec(read(`services/${service}/main.ts`))?.[1] ?? ''
  return [...new Set([...settingsIn(shapeOf('common')), ...settingsIn(own.replaceAll(', ', ',\n'))])]
}

/** Which services read each of all settings. */
export const settingsByReader = (): Map<string, ServiceName[]> => {
  const pairs = serviceNames.flatMap((service) => settingsOf(service).map((name) => ({ name, service })))
  const byName = Map.groupBy(pairs, ({ name }) => name)
  return new Map([...byName].map(([name, readers]) => [name, readers.map(({ service }) => service)]))
}

/** What a setting is when it is not set, as the code writes it; undefined where nothing is written. */
export function defaultOf(name: string): string | undefined {
  const declared = sources.flatMap((text) => [...text.matchAll(declarationOf(name))].map(([, schema = '']) => schema))
  const schemas = declared.map((schema) => sharedSchema(schema) ?? schema)
  return schemas.map((schema) => /\.default\(\s*(.*?)\)/s.exec(schema)?.[1]).find((value) => value !== undefined)
}

/** To the next setting, the comment before it, or the end of the shape. */
const declarationOf = (name: string) =>
  new RegExp(`^[{ ]*${name}: *((?:z\\b|[a-z]).*?),?$(?=\\n *(?:[A-Z/]|\\.\\.\\.|\\}))`, 'gms')

/** One that several settings have, by its name. */
function sharedSchema(name: string): string | undefined {
  if (!/^\w+$/.test(name)) return undefined
  const shared = sources.map((text) => new RegExp(`^(?:export )?const ${name} = (.*?)^(?=\\S)`, 'ms').exec(text)?.[1])
  return shared.find((schema) => schema !== undefined)
}
