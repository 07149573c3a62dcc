import { expect, test } from 'vitest'
import { patiently } from './patiently.ts'

test('what fails is tried again only while it may pass, and no longer than there is patience', async () => {
  let tries = 0
  const work = () => Promise.reject(new Error(`try ${++tries}`))
  await expect(patiently(work, () => false)).rejects.toThrow('try 1')
  await expect(patiently(work, () => true, 100)).rejects.toThrow('try 3')
})
