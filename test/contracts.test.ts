import { contractModules } from '@app/gateway/contracts.ts'
import { type Http, isEvent, isNotice, isRpc, type Rpc } from '@app/shared/api/contract.ts'
import { describe, expect, test } from 'vitest'

const contracts = Object.entries(contractModules).flatMap(([service, module]) =>
  Object.entries(module).flatMap(([name, contract]: [string, unknown]) =>
    isRpc(contract) || isEvent(contract) || isNotice(contract) ? [{ service, name, contract }] : [],
  ),
)
const endpoints = contracts.flatMap(({ name, contract }) =>
  isRpc(contract) && contract.http ? [{ name, contract, http: contract.http }] : [],
)

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

test.each(contracts)('$service $name has the subject of its name', ({ service, name, contract }) => {
  expect(contract.subject).toBe(`${contract.kind}.${service}.${kebab(name)}`)
})

test('no two contracts share a subject, no two endpoints a name or a route', () => {
  const unique = (values: string[]) => expect(values).toEqual([...new Set(values)])
  unique(contracts.map(({ contract }) => contract.subject))
  unique(endpoints.map(({ name }) => name))
  unique(endpoints.map(({ http }) => `${http.method} ${http.path.replaceAll(/\{\w+\}/g, '{}')}`))
})

describe.each(endpoints)('$name', ({ contract, http }: { contract: Rpc; http: Http }) => {
  test('its path has the parameters that it declares', () => {
    const inPath = [...http.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    expect(inPath).toEqual(Object.keys(contract.params.shape))
  })

  test('it takes a body only where one is sent', () => {
    if (http.method === 'GET' || http.method === 'DELETE') expect(contract.body.type).toBe('undefined')
  })

  test('its examples are what it takes and answers, and nothing of them is stripped', () => {
    const { example, body, answer } = contract
    expect(example).toBeDefined()
    expect(answer.parse(example?.answer)).toEqual(example?.answer)
    if (body.type === 'undefined') expect(example?.body).toBeUndefined()
    else expect(body.safeParse(example?.body ?? {}).error).toBeUndefined()
  })

  test('it says what it is for in one line', () => {
    expect(contract.summary).toMatch(/^[A-Z][^\n]{3,90}[^.]$/)
  })
})
