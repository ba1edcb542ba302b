// The folder that was opened last by its path, because files of one folder are asked for one after the other.
import { closeFd, openAt, openFlags } from './libc.ts'

export class FolderCache implements Disposable {
  readonly #root: number
  #key = ''
  #fd: number | undefined

  constructor(root: number) {
    this.#root = root
  }

  /**
   * The folder with these names, from the volume's own down; no link is followed. The descriptor is valid until the next
   * call. Throws SystemError.
   */
  open(names: readonly Buffer[]): number {
    if (names.length === 0) return this.#root
    const key = names.map((name) => name.toString('latin1')).join('/')
    if (this.#fd !== undefined && key === this.#key) return this.#fd
    this.forget()
    let fd = this.#root
    for (const name of names) {
      try {
        const below = openAt(fd, name, openFlags.directory | openFlags.path)
        if (fd !== this.#root) closeFd(fd)
        fd = below
      } catch (error) {
        if (fd !== this.#root) closeFd(fd)
        throw error
      }
    }
    this.#key = key
    this.#fd = fd
    return fd
  }

  forget(): void {
    if (this.#fd !== undefined) closeFd(this.#fd)
    this.#fd = undefined
  }

  [Symbol.dispose](): void {
    this.forget()
  }
}
