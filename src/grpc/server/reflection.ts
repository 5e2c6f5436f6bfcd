/**
 * grpc.reflection v1 and v1alpha (two packages, one protocol): the services and their definitions, so that tools such
 * as grpcurl need no .proto files.
 */
import { create, type DescFile, type DescService, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '../../base/index.ts';
import { decodeRequest, encode } from '../codec/messages.ts';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../generated/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../generated/grpc/reflection/v1alpha/reflection_pb.ts';
import type { MethodTable } from './method-table.ts';

type Question = ServerReflectionRequest['messageRequest'];
type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

export class Reflection {
  readonly #services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  /** Files by every symbol in them: services, methods, messages, fields, enums, extensions. */
  readonly #symbols = new Map<string, DescFile>();
  /** Files by extended message and field number. */
  readonly #extensions = new Map<string, Map<number, DescFile>>();

  constructor(services: readonly DescService[]) {
    const own = [ServerReflection, ServerReflectionAlpha];
    this.#services = [...services, ...own].map((service) => service.typeName);
    for (const service of [...services, ...own]) this.#addFile(service.file);
  }

  register(methods: MethodTable): void {
    // both packages have the same messages but for their names, which the wire does not carry
    for (const { method } of [ServerReflection, ServerReflectionAlpha]) {
      methods.raw(method.serverReflectionInfo, {
        kind: 'bidi',
        handle: async (_call, requests, sink) => {
          for await (const bytes of requests) {
            const request = decodeRequest(ServerReflectionRequestSchema, bytes);
            const answer = {
              validHost: request.host,
              originalRequest: request,
              messageResponse: this.#answer(request.messageRequest),
            };
            await sink.send(encode(ServerReflectionResponseSchema, create(ServerReflectionResponseSchema, answer)));
          }
        },
      });
    }
  }

  #answer(question: Question): Answer {
    switch (question.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: this.#services.map((name) => ({ name })) } };
      case 'fileByFilename':
        return this.#fileAnswer(this.#files.get(question.value), `file ${JSON.stringify(question.value)}`);
      case 'fileContainingSymbol':
        return this.#fileAnswer(this.#symbols.get(question.value), `symbol ${JSON.stringify(question.value)}`);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = question.value;
        return this.#fileAnswer(
          this.#extensions.get(containingType)?.get(extensionNumber),
          `extension ${extensionNumber} of ${JSON.stringify(containingType)}`,
        );
      }
      case 'allExtensionNumbersOfType': {
        const numbers = [...(this.#extensions.get(question.value)?.keys() ?? [])];
        if (numbers.length === 0 && !this.#symbols.has(question.value))
          return notFoundAnswer(`type ${JSON.stringify(question.value)}`);
        return {
          case: 'allExtensionNumbersResponse',
          value: { baseTypeName: question.value, extensionNumber: numbers },
        };
      }
      default:
        return {
          case: 'errorResponse',
          value: { errorCode: Code.INVALID_ARGUMENT, errorMessage: 'the request asks for nothing' },
        };
    }
  }

  #fileAnswer(file: DescFile | undefined, what: string): Answer {
    if (!file) return notFoundAnswer(what);
    return {
      case: 'fileDescriptorResponse',
      value: { fileDescriptorProto: [toBinary(FileDescriptorProtoSchema, file.proto)] },
    };
  }

  #addFile(file: DescFile): void {
    if (this.#files.has(file.proto.name)) return;
    this.#files.set(file.proto.name, file);
    for (const dependency of file.dependencies) this.#addFile(dependency);
    for (const { typeName, methods } of file.services) {
      this.#symbols.set(typeName, file);
      for (const method of methods) this.#symbols.set(`${typeName}.${method.name}`, file);
    }
    for (const { typeName } of file.enums) this.#symbols.set(typeName, file);
    for (const message of file.messages) this.#addMessage(message, file);
    this.#addExtensions(file.extensions, file);
  }

  #addMessage(message: DescFile['messages'][number], file: DescFile): void {
    this.#symbols.set(message.typeName, file);
    for (const field of message.fields) this.#symbols.set(`${message.typeName}.${field.name}`, file);
    for (const { typeName } of message.nestedEnums) this.#symbols.set(typeName, file);
    for (const nested of message.nestedMessages) this.#addMessage(nested, file);
    this.#addExtensions(message.nestedExtensions, file);
  }

  #addExtensions(extensions: DescFile['extensions'], file: DescFile): void {
    for (const extension of extensions) {
      this.#symbols.set(extension.typeName, file);
      const numbers = this.#extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
      numbers.set(extension.number, file);
      this.#extensions.set(extension.extendee.typeName, numbers);
    }
  }
}

function notFoundAnswer(what: string): Answer {
  return { case: 'errorResponse', value: { errorCode: Code.NOT_FOUND, errorMessage: `${what} is unknown` } };
}
