import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createSecretKey } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { deliveryErrorCodes } from '@app/shared/contracts/webhook-deliveries.ts'
import { signatureOf } from '../services/webhooks/attempts/sign.ts'

const run = promisify(execFile)
const docs = join(import.meta.dirname, '../docs')
const page = readFileSync(join(docs, 'webhooks.md'), 'utf8')

interface Vector {
  name: string
  valid: boolean
  secret: string
  now: number
  header: string
  body_base64: string
}

const { vectors } = JSON.parse(readFileSync(join(docs, 'webhook-vectors.json'), 'utf8')) as { vectors: Vector[] }
const verdicts = vectors.map(({ name, valid }) => `${name}: ${valid}`)

/** The code of the page in this language: all its blocks, one after the other. */
function codeIn(language: string) {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code)
  expect(blocks.length).toBeGreaterThan(0)
  return blocks.join('\n')
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(inject('runFolder'), 'webhook-docs-'))
})

function fileOf(name: string, text: string) {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const isThere = (program: string, question = '--version') =>
  run(program, [question]).then(
    () => true,
    () => false,
  )

async function expectVerdicts(program: string, ...args: string[]) {
  const { stdout } = await run(program, [...args, join(docs, 'webhook-vectors.json')])
  expect(stdout.trim().split('\n')).toEqual(verdicts)
}

test('the page says what each error code of a delivery means, and no other', () => {
  const [, table = ''] = /^\| `error_code` \|.*?\n\|.*?\n((?:\|.*\n)+)/m.exec(page) ?? []
  const explained = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, code]) => code)
  expect(explained).toEqual([...deliveryErrorCodes])
})

const bodyOf = ({ body_base64 }: Vector) => Buffer.from(body_base64, 'base64')

test.each(vectors.filter(({ valid }) => valid))('vector "$name" is what we sign', (vector) => {
  const [, t = ''] = /^t=(\d+),/.exec(vector.header) ?? []
  const key = createSecretKey(vector.secret, 'utf8')
  const [, signature = ''] = signatureOf([key], bodyOf(vector), Number(t) * 1_000).split(',')
  expect(vector.header).toContain(signature)
})

describe('the verifier of the page accepts what is genuine, and nothing else', () => {
  test('in JavaScript', async () => {
    const { verify } = (await import(pathToFileURL(fileOf('verify.mjs', codeIn('js'))).href)) as {
      verify: (rawBody: Buffer, header: string, secret: string, now: number) => boolean
    }
    expect(
      vectors.map((vector) => `${vector.name}: ${verify(bodyOf(vector), vector.header, vector.secret, vector.now)}`),
    ).toEqual(verdicts)
  })

  test('in Python', async ({ skip }) => {
    if (!(await isThere('python3'))) skip()
    const main = `
import base64, json, sys
for v in json.load(open(sys.argv[1]))["vectors"]:
    ok = verify(base64.b64decode(v["body_base64"]), v["header"], v["secret"], v["now"])
    print(f'{v["name"]}: {str(ok).lower()}')
`
    const file = fileOf('verify.py', codeIn('python') + main)
    await expectVerdicts('python3', file)
  })

  test('in Java', async ({ skip }) => {
    if (!(await isThere('javac'))) skip()
    const rows = vectors.map((v) => [v.name, v.body_base64, v.header, v.secret, v.now].join('\t'))
    const input = fileOf('vectors.tsv', `${rows.join('\n')}\n`)
    const main = `
class Main {
  public static void main(String[] args) throws Exception {
    for (var line : java.nio.file.Files.readAllLines(java.nio.file.Path.of(args[0]))) {
      var v = line.split("\\t", -1);
      var ok = Webhooks.verify(java.util.Base64.getDecoder().decode(v[1]), v[2], v[3], Long.parseLong(v[4]));
      System.out.println(v[0] + ": " + ok);
    }
  }
}
`
    await run('javac', ['-d', folder, fileOf('Main.java', codeIn('java') + main)])
    const { stdout } = await run('java', ['-cp', folder, 'Main', input])
    expect(stdout.trim().split('\n')).toEqual(verdicts)
  })

  test('in Ruby', async ({ skip }) => {
    if (!(await isThere('ruby'))) skip()
    const main = `
require "json"
JSON.parse(File.read(ARGV[0]))["vectors"].each do |v|
  puts "#{v["name"]}: #{verify(v["body_base64"].unpack1("m0"), v["header"], v["secret"], v["now"])}"
end
`
    await expectVerdicts('ruby', fileOf('verify.rb', codeIn('ruby') + main))
  })

  test('in PHP', async ({ skip }) => {
    if (!(await isThere('php'))) skip()
    const main = `
foreach (json_decode(file_get_contents($argv[1]), true)['vectors'] as $v) {
    $ok = verify(base64_decode($v['body_base64']), $v['header'], $v['secret'], $v['now']);
    echo $v['name'], ': ', $ok ? 'true' : 'false', "\\n";
}
`
    await expectVerdicts('php', fileOf('verify.php', `<?php\n${codeIn('php')}${main}`))
  })

  test('in Go', async ({ skip }) => {
    if (!(await isThere('go', 'version'))) skip()
    const main = `
func main() {
	text, _ := os.ReadFile(os.Args[1])
	var file struct{ Vectors []struct{ Name, Secret, Header string; Now int64; Body []byte \`json:"body_base64"\` } }
	json.Unmarshal(text, &file)
	for _, v := range file.Vectors {
		fmt.Printf("%s: %v\\n", v.Name, Verify(v.Body, v.Header, v.Secret, time.Unix(v.Now, 0)))
	}
}
`
    const imports = 'package main\nimport ("encoding/json"; "fmt"; "os")\n'
    await expectVerdicts('go', 'run', fileOf('verify.go', imports + codeIn('go') + main))
  })
})
