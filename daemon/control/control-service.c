/* SPDX-License-Identifier: MIT */

/* org.varlink.service, which every Varlink service has (varlink.org/Service), for `varlinkctl
 * introspect`. */

#include <errno.h>
#include <string.h>

#include "daemon/control/control-internal.h"

#define SERVICE "org.varlink.service"

static const char service_description[] =
    "# How every Varlink service describes itself.\n"
    "interface org.varlink.service\n"
    "\n"
    "method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: []string)\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n"
    "\n"
    "error InterfaceNotFound (interface: string)\n"
    "error MethodNotFound (method: string)\n"
    "error MethodNotImplemented (method: string)\n"
    "error InvalidParameter (parameter: string)\n"
    "error PermissionDenied ()\n"
    "error ExpectedMore ()\n";

/* Returns the length of "io.berth" in "io.berth.Runs"; 0: not a method's name. */
static size_t interface_length(const char *method) {
    const char *dot = strrchr(method, '.');

    return dot ? (size_t) (dot - method) : 0;
}

static bool has_interface(const struct control *c, const char *name, size_t length) {
    const char *own = c->service->methods[0].name;

    return (length == strlen(SERVICE) && strncmp(name, SERVICE, length) == 0) ||
           (own && interface_length(own) == length && strncmp(name, own, length) == 0);
}

static int get_info(struct control_call *call, json_t *params) {
    const char *own = call->client->control->service->methods[0].name, *key = json_object_iter_key(json_object_iter(params));

    if (key)
        return control_call_error(call, SERVICE ".InvalidParameter", json_pack("{s:s}", "parameter", key));
    return control_call_answer(call, json_pack("{s:s, s:s, s:s, s:s, s:[s, s%]}", "vendor", "berth", "product", "berth", "version",
                                              VERSION, "url", "", "interfaces", SERVICE, own ? own : "",
                                              own ? interface_length(own) : 0));
}

static int get_interface_description(struct control_call *call, json_t *params) {
    const char *name = json_string_value(json_object_get(params, "interface"));

    if (!name || json_object_size(params) > 1)
        return control_call_error(call, SERVICE ".InvalidParameter", json_pack("{s:s}", "parameter", "interface"));
    if (!has_interface(call->client->control, name, strlen(name)))
        return control_call_error(call, SERVICE ".InterfaceNotFound", json_pack("{s:s}", "interface", name));
    return control_call_answer(call, json_pack("{s:s}", "description", strcmp(name, SERVICE) == 0
                                                                           ? service_description
                                                                           : call->client->control->service->description));
}

int control_service_run(struct control_call *call, const char *method, json_t *params) {
    size_t length = interface_length(method);

    if (strcmp(method, SERVICE ".GetInfo") == 0)
        return get_info(call, params);
    if (strcmp(method, SERVICE ".GetInterfaceDescription") == 0)
        return get_interface_description(call, params);
    if (length == 0 || has_interface(call->client->control, method, length))
        return control_call_error(call, SERVICE ".MethodNotFound", json_pack("{s:s}", "method", method));
    return control_call_error(call, SERVICE ".InterfaceNotFound", json_pack("{s:s%}", "interface", method, length));
}
