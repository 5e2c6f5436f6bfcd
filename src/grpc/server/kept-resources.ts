/**
 * The five calls of a kind of resource that is kept as it is: create, get, list, update under its etag, delete. Its
 * messages have `name` and `etag`, and perhaps `deletion_protection`.
 */
import { clone, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { KeptResource, ResourceKind, ResourceStore, Service } from '../../service/index.ts';
import { applyMask } from '../convert/field-mask.ts';
import { idsOf, type NameForm } from '../convert/names.ts';
import { pageOf, type PageRequest } from './pages.ts';

const RESOURCE_ID = /^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,127}$/;

type ResourceMessage<Desc extends DescMessage> = MessageShape<Desc> & {
  name: string;
  etag: string;
  deletionProtection?: boolean;
};

export interface ResourceType<Desc extends DescMessage> {
  readonly kind: ResourceKind;
  readonly schema: Desc;
  /** The form of its names, and of those of its parents. */
  readonly form: NameForm;
  readonly parentForm: NameForm;
  /** The name of its id and of its message in requests. */
  readonly idField: string;
  readonly field: string;
  /** Fields that an update may change. */
  readonly changeable: readonly string[];
  /** Most resources of one page. */
  readonly pageItems: number;
  /** INVALID_ARGUMENT, and FAILED_PRECONDITION where it may not take the place of `present`. */
  check(message: MessageShape<Desc>, present: MessageShape<Desc> | undefined, ignoresWarnings: boolean): void;
}

export class KeptResources<Desc extends DescMessage> {
  readonly #service: Service;
  readonly #type: ResourceType<Desc>;

  constructor(service: Service, type: ResourceType<Desc>) {
    this.#service = service;
    this.#type = type;
  }

  async create(
    context: RequestContext,
    parent: string,
    id: string,
    given: MessageShape<Desc> | undefined,
  ): Promise<ResourceMessage<Desc>> {
    const { kind, parentForm, idField } = this.#type;
    idsOf(parent, parentForm, 'parent');
    if (!RESOURCE_ID.test(id))
      throw invalidArgument(
        `${idField} ${quote(id, 200)} must be 1 to 128 characters of [-_.a-zA-Z0-9], the first of [_a-zA-Z0-9]`,
        { field: idField },
      );
    const message = this.#given(given);
    this.#type.check(message, undefined, false);
    const name = `${parent}/${kind}/${id}`;
    return this.#message(await this.#store.create(context, kind, name, this.#contentsOf(message)));
  }

  async get(context: RequestContext, name: string): Promise<ResourceMessage<Desc>> {
    return this.#message(await this.#find(context, name, 'name'));
  }

  async list(context: RequestContext, parent: string, page: PageRequest) {
    const { kind, parentForm, pageItems } = this.#type;
    idsOf(parent, parentForm, 'parent');
    return pageOf(await this.all(context, parent), page, `${parent}/${kind}/`, pageItems);
  }

  /** Those of a parent, by name. The form of its name is that of an existing one. */
  async all(context: RequestContext, parent: string): Promise<ResourceMessage<Desc>[]> {
    const kept = await this.#store.list(context, this.#type.kind, parent);
    return kept.map((each) => this.#message(each));
  }

  /** Without a mask all fields that may change are replaced. */
  async update(
    context: RequestContext,
    message: MessageShape<Desc> | undefined,
    mask: FieldMask | undefined,
    ignoresWarnings = false,
  ): Promise<ResourceMessage<Desc>> {
    const { kind, schema, field, changeable } = this.#type;
    const given = this.#given(message);
    const kept = await this.#find(context, given.name, `${field}.name`);
    const present = this.#message(kept);
    checkEtag(present, given.etag);
    const changed = applyMask(schema, { present, given, mask }, changeable, changeable);
    this.#type.check(changed, present, ignoresWarnings);
    const replaced = { ...kept, contents: this.#contentsOf(changed) };
    return this.#message(await this.#store.replace(context, kind, replaced));
  }

  async delete(context: RequestContext, name: string, etag: string): Promise<void> {
    const kept = await this.#find(context, name, 'name');
    const present = this.#message(kept);
    checkEtag(present, etag);
    if (present.deletionProtection)
      throw new BigtableError(Code.FAILED_PRECONDITION, `${name} is protected against deletion`);
    await this.#store.remove(context, this.#type.kind, name, kept.version);
  }

  get #store(): ResourceStore {
    const { resources } = this.#service;
    if (resources === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door keeps no resources');
    return resources;
  }

  #given(message: MessageShape<Desc> | undefined): ResourceMessage<Desc> {
    const { field } = this.#type;
    if (message === undefined) throw invalidArgument(`${field} must be set`, { field });
    return named(message);
  }

  async #find(context: RequestContext, name: string, field: string): Promise<KeptResource> {
    idsOf(name, this.#type.form, field);
    return this.#store.find(context, this.#type.kind, name);
  }

  /** Without the fields that are not its contents, and without fields that this program does not know. */
  #contentsOf(message: MessageShape<Desc>): Uint8Array {
    const contents = named(clone(this.#type.schema, message));
    contents.name = '';
    contents.etag = '';
    return toBinary(this.#type.schema, contents, { writeUnknownFields: false });
  }

  #message({ name, contents, version }: KeptResource): ResourceMessage<Desc> {
    const message = named(fromBinary(this.#type.schema, contents));
    message.name = name;
    message.etag = Buffer.from(String(version)).toString('base64');
    return message;
  }
}

/** The message with the fields that every kind of resource has. */
function named<Desc extends DescMessage>(message: MessageShape<Desc>): ResourceMessage<Desc> {
  return message as ResourceMessage<Desc>;
}

/** ABORTED where the caller has read another state of the resource. */
function checkEtag({ name, etag }: { readonly name: string; readonly etag: string }, given: string): void {
  if (given === '' || given === etag) return;
  throw new BigtableError(Code.ABORTED, `${name} has changed since its etag ${quote(given, 100)} was read`);
}
