// Simulates a network described by a text file (see ../ns2/network.tcl): network FILE SECONDS [count]
//
// The packets that bottlenecks send are always counted: one addition in some ten thousand nanoseconds.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t kPayload = 1000;
constexpr uint32_t kPacket = 1040;
constexpr uint32_t kBuffer = 6 * 1024 * 1024;
constexpr uint16_t kPort = 5000;

struct LinkLine {
    std::string from, to, kind;
    uint64_t rate, delay;
    double limit, min, max;
};

struct FlowLine {
    std::string from, to;
    uint64_t start;
};

using Ends = std::pair<std::string, std::string>;

struct Network {
    std::vector<LinkLine> links;
    std::vector<FlowLine> flows;
    std::set<Ends> bottlenecks;
};

uint64_t g_packets = 0;
uint64_t g_others = 0;

void CountPacket(Ptr<const Packet>) { ++g_packets; }
void CountOther(Ptr<const Packet>) { ++g_others; }

Network Read(const char* file) {
    Network network;
    std::ifstream input(file);
    std::string text;
    while (std::getline(input, text)) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "link") {
            LinkLine link{};
            line >> link.from >> link.to >> link.rate >> link.delay >> link.kind >> link.limit >> link.min >> link.max;
            network.links.push_back(link);
        } else if (word == "flow") {
            FlowLine flow{};
            line >> flow.from >> flow.to >> flow.start;
            network.flows.push_back(flow);
        } else if (word == "bottleneck") {
            Ends ends;
            line >> ends.first >> ends.second;
            network.bottlenecks.insert(ends);
        }
    }
    return network;
}

void SetStack(bool ecn) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayload));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kBuffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));
}

void InstallRed(Ptr<NetDevice> device, const LinkLine& link) {
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::RedQueueDisc",
                             "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, uint32_t(link.limit))),
                             "MeanPktSize", UintegerValue(kPacket),
                             "MinTh", DoubleValue(link.min),
                             "MaxTh", DoubleValue(link.max),
                             "QW", DoubleValue(0.002),
                             "LInterm", DoubleValue(10),
                             "Gentle", BooleanValue(true),
                             "Wait", BooleanValue(false),
                             "UseEcn", BooleanValue(true),
                             "UseHardDrop", BooleanValue(false),
                             "LinkBandwidth", DataRateValue(DataRate(link.rate)),
                             "LinkDelay", TimeValue(NanoSeconds(link.delay)));
    control.Install(device);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::cerr << "usage: network FILE SECONDS [count]\n";
        return 2;
    }
    const Network network = Read(argv[1]);
    const double seconds = std::stod(argv[2]);
    const bool countAll = argc > 3;

    bool red = false;
    for (const auto& link : network.links) {
        red |= link.kind == "red";
    }
    SetStack(red);

    std::map<std::string, Ptr<Node>> nodes;
    for (const auto& link : network.links) {
        for (const auto& name : {link.from, link.to}) {
            if (!nodes.count(name)) {
                nodes[name] = CreateObject<Node>();
            }
        }
    }
    // Routes are looked up once and then remembered, where global routing searches a list per packet.
    InternetStackHelper stack;
    Ipv4NixVectorHelper nix;
    stack.SetRoutingHelper(nix);
    for (const auto& node : nodes) {
        stack.Install(node.second);
    }

    std::map<std::string, Ipv4Address> addresses;
    Ipv4AddressHelper subnets("10.0.0.0", "255.255.255.252");
    for (const auto& link : network.links) {
        PointToPointHelper wire;
        wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate(link.rate)));
        wire.SetChannelAttribute("Delay", TimeValue(NanoSeconds(link.delay)));
        wire.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000000p"));
        auto devices = wire.Install(nodes[link.from], nodes[link.to]);
        auto forward = DynamicCast<PointToPointNetDevice>(devices.Get(0));
        if (link.kind == "red") {
            forward->GetQueue()->SetMaxSize(QueueSize("1p"));
            InstallRed(forward, link);
        } else {
            forward->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, uint32_t(link.limit)));
        }
        auto assigned = subnets.Assign(devices);
        subnets.NewNetwork();
        // Assigning addresses installs a queue discipline where there is none.
        TrafficControlHelper control;
        control.Uninstall(devices.Get(1));
        if (link.kind != "red") {
            control.Uninstall(forward);
        }
        addresses.emplace(link.from, assigned.GetAddress(0));
        addresses.emplace(link.to, assigned.GetAddress(1));
        if (network.bottlenecks.count({link.from, link.to})) {
            forward->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountPacket));
        } else if (countAll) {
            forward->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountOther));
        }
        if (countAll) {
            devices.Get(1)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountOther));
        }
    }

    std::map<std::string, ApplicationContainer> sinks;
    for (const auto& flow : network.flows) {
        if (!sinks.count(flow.to)) {
            PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
            sinks[flow.to] = sink.Install(nodes[flow.to]);
        }
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(addresses.at(flow.to), kPort));
        // Large writes: one object fills much of the send buffer, which segments are then cut from.
        sender.SetAttribute("SendSize", UintegerValue(100 * kPayload));
        sender.Install(nodes[flow.from]).Start(NanoSeconds(flow.start));
    }

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << "packets " << g_packets << '\n';
    if (countAll) {
        std::cout << "hops " << g_packets + g_others << '\n';
    }
    // The process ends here: taking thousands of objects apart is no part of simulating.
    std::cout.flush();
    std::_Exit(0);
}
