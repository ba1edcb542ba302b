// `kcp mover`: the copy of a volume between two movers, read by GNU tools.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { needsLoopDevices } from '#test/support/index.ts'
import { startMoverPair, type MoverPair } from './mover-pair.ts'
import { differences } from './compare-trees.ts'

const shell = (cwd: string, script: string): string =>
  execFileSync('/bin/bash', ['-euc', script], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

describe('a volume copied by movers', () => {
  let root: string
  let source: string
  let target: string
  let pair: MoverPair
  const signal = new AbortController().signal
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'kcp-mover-'))
    source = join(root, 'source')
    target = join(root, 'target')
    for (const folder of [source, target]) mkdirSync(folder)
    pair = await startMoverPair({ source, target })
  })
  afterEach(async () => {
    await pair[Symbol.asyncDispose]()
    rmSync(root, { recursive: true, force: true })
  })

  it('is equal with owners, modes, times, links, holes and special files', async () => {
    shell(
      source,
      `mkdir -p a/b c; echo hi > a/x; ln a/x a/b/y; ln -s nowhere sym; mkfifo fifo; mknod dev c 5 7
       head -c 3000000 /dev/urandom > big; truncate -s 64M sparse; echo x >> sparse; chmod 6711 big
       chown 5:6 c a/x; chown -h 7:8 sym; chmod 1777 c; touch -d '2001-01-01 01:01:01.123456789' a big; touch -hd 1969-01-01 sym
       : > $'odd\\nname\\377'; : > "$(printf 'x%.0s' {1..255})"`,
    )
    const result = await pair.round({ mode: 'final' })
    expect(differences(source, target)).to.deep.equal([])
    expect(result).to.include({ verified: true, unsettled: 0, deleted: 0 })
    expect(result.notKept.count).to.equal(0)
    expect(Number(shell(target, 'du -k sparse').split('\t')[0])).to.be.lessThan(100)
  })
  it('sends only the blocks that changed, and removes what the source no longer has', async () => {
    shell(
      source,
      'head -c 20000000 /dev/urandom > big; mkdir -p gone/with/files; touch gone/with/files/x; echo 1 > kept',
    )
    await pair.round()
    shell(source, 'printf changed | dd of=big bs=1 seek=7000000 conv=notrunc status=none; rm -r gone; echo 22 > kept')
    const result = await pair.round()
    expect(differences(source, target)).to.deep.equal([])
    expect(result).to.include({ updated: 2, deleted: 4, created: 0 })
    expect(result.bytesChanged).to.equal((1 << 17) + 3)
    expect(result.bytesOnWire).to.be.lessThan(200_000)
  })
  it('finds a change that size and time do not show in the final round, and repairs it', async () => {
    shell(source, 'echo one > small; head -c 3000000 /dev/zero > large; touch -d 2001-01-01 small large')
    await pair.round()
    shell(
      target,
      'echo two > small; printf x | dd of=large bs=1 seek=2000000 conv=notrunc status=none; touch -d 2001-01-01 *',
    )
    expect((await pair.round()).updated).to.equal(0)
    const result = await pair.round({ mode: 'final' })
    expect(result).to.include({ verified: true, updated: 2 })
    expect(differences(source, target)).to.deep.equal([])
  })
  describe('on a disk that lacks what memory has', () => {
    // As after a failed write to disk, of which the kernel has told once: its pages have the bytes, the disk does not.
    const mark = 'written to memory only'
    const other = 'what the disk has still'
    before(async function () {
      await needsLoopDevices(this)
    })
    const marksIn = (image: string): number[] => {
      const bytes = readFileSync(image)
      const found: number[] = []
      for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) found.push(at)
      return found
    }
    const lose = (image: string, count: number): void => {
      const places = marksIn(image)
      expect(places).to.have.length(count)
      const fd = openSync(image, 'r+')
      for (const place of places) writeSync(fd, other.slice(0, mark.length), place)
      closeSync(fd)
    }
    it('is compared with the disk by a final round, and repaired there', async () => {
      const image = join(root, 'image')
      shell(root, 'truncate -s 64M image; mkfs.ext4 -q image; mount -o loop image target')
      try {
        await using mounted = await startMoverPair({ source, target })
        shell(
          source,
          `printf '${mark}' > small; (head -c 400000 /dev/zero; printf '${mark}') > large
           (head -c 3000000 /dev/urandom; printf '${mark}') > huge; cp small same`,
        )
        await mounted.round({ mode: 'final' })
        lose(image, 4)
        // A file whose time differs is copied by its blocks, of which memory has all but one.
        shell(source, 'printf x | dd of=huge bs=1 conv=notrunc status=none')
        expect(shell(target, 'cat small; tail -c 22 huge')).to.equal(mark + mark)
        const result = await mounted.round({ mode: 'final' })
        expect(result.verified).to.equal(true)
        expect(marksIn(image)).to.have.length(4)
      } finally {
        shell(root, 'umount target')
      }
      shell(root, 'mount -o loop,ro image target')
      try {
        expect(differences(source, target)).to.deep.equal([])
      } finally {
        shell(root, 'umount target')
      }
    })
    it('is a device: is compared with the disk, too', async () => {
      const image = join(root, 'image')
      shell(root, `(head -c 3000000 /dev/urandom; printf '${mark}') > device; truncate -s 4M device image`)
      const loop = shell(root, 'losetup --show -f image').trim()
      try {
        await using devices = await startMoverPair({ source: join(root, 'device'), target: loop, block: true })
        await devices.round({ mode: 'final' })
        lose(image, 1)
        expect(shell(root, `tail -c +3000001 ${loop} | head -c 22`)).to.equal(mark)
        const result = await devices.round({ mode: 'final' })
        expect(result.verified).to.equal(true)
        expect(marksIn(image)).to.have.length(1)
      } finally {
        shell(root, `losetup -d ${loop}`)
      }
    })
  })
  it('is repaired by a final round with changes of all kinds, with the digest of one that finds everything equal', async () => {
    shell(
      source,
      `mkdir -p d/e gone; echo 1 > d/file; ln d/file d/other; ln -s x link; mkfifo fifo; touch gone/x
       for i in $(seq 6); do head -c 400000 /dev/urandom > medium-$i; done; head -c 3000000 /dev/urandom > large`,
    )
    await pair.round()
    shell(
      source,
      `echo 22 > d/file; rm -r gone link; ln -s y link; mkdir new; echo 3 > new/file; chmod 600 fifo; ln medium-1 new/link
       printf x | dd of=large bs=1 seek=2000000 conv=notrunc status=none; printf x >> medium-2; touch -d 2001-01-01 medium-3`,
    )
    const result = await pair.round({ mode: 'final' })
    expect(result).to.include({ verified: true, entries: 17 })
    expect(differences(source, target)).to.deep.equal([])
    // The digest is that of a round that finds everything equal.
    const again = await pair.round({ mode: 'final' })
    expect(again).to.include({ verified: true, updated: 0, created: 0, bytesChanged: 0, digest: result.digest })
  })
  it('stops and asks if the source is empty and the target is not', async () => {
    shell(target, 'echo data > file')
    shell(source, 'mkdir lost+found')
    const error = await pair.round().catch((reason: unknown) => reason)
    expect(error).to.include({ code: 'SourceEmpty', isFinal: true })
    expect(shell(target, 'ls')).to.equal('file\n')
    expect((await pair.round({ allowEmpty: true })).deleted).to.equal(1)
  })
  it('is compared though its entries are more than a mover keeps in memory', async () => {
    shell(source, 'mkdir many; cd many; seq -f "file-with-a-longer-name-%06g" 12000 | xargs touch')
    expect(await pair.round({ mode: 'final' })).to.include({ verified: true, entries: 12_002 })
    expect(await pair.round({ mode: 'final' })).to.include({ verified: true, created: 0 })
  })
  it('is counted by a survey', async () => {
    shell(source, 'mkdir d; echo 12345 > d/file; ln d/file d/other; ln -s x link; truncate -s 1M holes')
    const survey = await pair.source.survey(() => undefined, signal)
    expect(survey.entries).to.include({ directories: 2, files: 2, hardLinks: 1, symlinks: 1 })
    expect(survey).to.include({ bytes: 6 + (1 << 20), sparseBytes: 1 << 20, isEmpty: false })
    expect(survey.largestFile).to.deep.equal({ path: 'holes', bytes: 1 << 20 })
  })
})
