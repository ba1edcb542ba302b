// Keys in etcd below a prefix: `PREFIX/o/` begins those of objects.
import { KeyBytes } from '#store/key-bytes.ts'

export class EtcdKeys extends KeyBytes {
  /** Says which installation the data are of, and which process may write them. */
  readonly owner: Buffer
  /** Nobody reads it: writes of it raise etcd's revision. */
  readonly raised: Buffer

  constructor(prefix: string) {
    super(`${prefix}/o/`)
    this.owner = Buffer.from(`${prefix}/owner`)
    this.raised = Buffer.from(`${prefix}/raised`)
  }
}
