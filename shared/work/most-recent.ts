import { LRUCache } from 'lru-cache'

type Options<K extends {}, V extends {}> = Pick<LRUCache.Options<K, V, unknown>, 'dispose' | 'ttl'>

/**
 * Keeps the `most` entries that were used last. It grows as it fills: given as `max`, the library takes the room of all at once, which for
 * 50,000 is 1.3 MB and 4 ms of whoever starts.
 */
export const mostRecent = <K extends {}, V extends {}>(most: number, options: Options<K, V> = {}): LRUCache<K, V> =>
  new LRUCache({ ...options, maxSize: most, sizeCalculation: () => 1 })
