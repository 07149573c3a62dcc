import { expect, test } from 'vitest'
import { piecesOf } from './pieces.ts'

const list = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

test('a value of another shape stays whole', () => {
  expect(piecesOf('weather', { a: 1 })).toEqual([{ a: 1 }])
  expect(piecesOf('smb_message_echoes', { message_echoes: 'x' })).toEqual([{ message_echoes: 'x' }])
  expect(piecesOf('smb_app_state_sync', { state_sync: [] })).toEqual([])
  expect(piecesOf('history', { metadata: 1 })).toEqual([{ metadata: 1 }])
  expect(piecesOf('history', { metadata: 1, history: null })).toEqual([{ metadata: 1, history: null }])
  expect(piecesOf('history', { history: [], messages: null })).toEqual([])
  expect(piecesOf('history', { history: [null, 'x', { threads: 'x' }] })).toEqual([
    { history: [null] },
    { history: ['x'] },
    { history: [{ threads: 'x' }] },
  ])
  expect(piecesOf('history', { history: 'x' })).toEqual([{ history: ['x'] }])
  expect(piecesOf('history', { history: [{ threads: [null, { id: 'a' }] }] })).toEqual([
    { history: [{ threads: [null] }] },
    { history: [{ threads: [{ id: 'a' }] }] },
  ])
})

test('each echo is a piece of its own, with what stood around it', () => {
  expect(piecesOf('smb_message_echoes', { metadata: 1, message_echoes: list(2) })).toEqual([
    { metadata: 1, message_echoes: [{ n: 0 }] },
    { metadata: 1, message_echoes: [{ n: 1 }] },
  ])
})

test('an address book and history go in pieces of some hundred, and nothing is lost of them', () => {
  expect(piecesOf('smb_app_state_sync', { state_sync: list(1_001) }).map((piece) => piece['state_sync'])).toEqual([
    list(500),
    list(1_000).slice(500),
    [{ n: 1_000 }],
  ])
  const history = [
    {
      phase: 0,
      threads: [
        { id: 'a', messages: list(401) },
        { id: 'b', messages: list(1) },
      ],
    },
  ]
  const pieces = piecesOf('history', {
    metadata: 1,
    history: [...history, { errors: ['declined'] }],
    messages: list(3),
    message_echoes: list(201),
  })
  expect(pieces).toEqual([
    ...[list(200), list(400).slice(200), [{ n: 400 }]].map((messages) => ({
      metadata: 1,
      history: [{ phase: 0, threads: [{ id: 'a', messages }] }],
    })),
    { metadata: 1, history: [{ phase: 0, threads: [{ id: 'b', messages: [{ n: 0 }] }] }] },
    { metadata: 1, history: [{ errors: ['declined'] }] },
    { metadata: 1, messages: list(3) },
    { metadata: 1, message_echoes: list(200) },
    { metadata: 1, message_echoes: [{ n: 200 }] },
  ])
})

test('pieces of long texts have fewer of them, and one that is longer is a piece of its own', () => {
  const text = (n: number, length: number) => ({ n, text: 'x'.repeat(length) })
  const messages = [text(1, 30_000), text(2, 30_000), text(3, 30_000), text(4, 100_000), text(5, 10)]
  const pieces = piecesOf('history', { history: [{ threads: [{ id: 'a', messages }] }] })
  const ordinals = JSON.stringify(pieces.map((piece) => JSON.stringify(piece).match(/(?<="n":)\d/g)))
  expect(ordinals).toBe('[["1","2"],["3"],["4"],["5"]]')
})
